from .bounds import (
    clopper_pearson as clopper_pearson,
    detectable as detectable,
    epsilon_bound as epsilon_bound,
    show_epsilon as show_epsilon,
)
from .encoding import Raised as Raised, Sample as Sample, Vocabulary as Vocabulary, taken_apart as taken_apart
from .testing import (
    ERROR as ERROR,
    MOST_PAIRS as MOST_PAIRS,
    Claim as Claim,
    Found as Found,
    search_and_test as search_and_test,
)
