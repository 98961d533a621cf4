from .boxes import AxisSets as AxisSets, Boxes as Boxes, BoxSums as BoxSums
from .fact_test import (
    FactDeviation as FactDeviation,
    FactTest as FactTest,
    inner_product as inner_product,
    judge_facts as judge_facts,
)
from .facts import (
    Constraints as Constraints,
    Fact as Fact,
    FactSource as FactSource,
    FactSystem as FactSystem,
    read_facts as read_facts,
    read_numbers as read_numbers,
)
from .feasibility import contradicting_facts as contradicting_facts, implied_ranges as implied_ranges
from .given_facts import GivenFacts as GivenFacts, exact_history as exact_history
from .release_facts import (
    KnownCounts as KnownCounts,
    ReleaseConstraints as ReleaseConstraints,
    ReleaseFacts as ReleaseFacts,
    join_facts as join_facts,
    read_release_facts as read_release_facts,
)
from .sentences import read_sentence as read_sentence
from .verdict import RefinedStatement as RefinedStatement, RefinementPrivacy as RefinementPrivacy, explain as explain
