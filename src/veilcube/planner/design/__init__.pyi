from .half_width import (
    LARGEST_PLANNED_EPSILON as LARGEST_PLANNED_EPSILON,
    AnswerNoise as AnswerNoise,
    answer_variances as answer_variances,
    mean_variance as mean_variance,
    read_target as read_target,
    root_mean_square as root_mean_square,
    smallest_epsilon as smallest_epsilon,
)
from .price import (
    FAMILIES as FAMILIES,
    Chain as Chain,
    Family as Family,
    Price as Price,
    SquaresPrice as SquaresPrice,
    longest_chains as longest_chains,
    price_of as price_of,
)
from .protocol import (
    Design as Design,
    Identity as Identity,
    LeastSquaresErrors as LeastSquaresErrors,
    LinearDesign as LinearDesign,
    MeasuredOnce as MeasuredOnce,
    Parts as Parts,
    Planned as Planned,
    Strategy as Strategy,
    StrategyDefaults as StrategyDefaults,
    default_workload as default_workload,
)
from .spending import (
    GaussianSpending as GaussianSpending,
    LaplaceSpending as LaplaceSpending,
    Spending as Spending,
)
from .weights import (
    balance_weights as balance_weights,
    in_lowest_terms as in_lowest_terms,
    multipliers_of as multipliers_of,
    shares as shares,
    whole_multipliers as whole_multipliers,
    within_column as within_column,
)
