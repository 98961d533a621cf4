from .amended import AmendedEstimate as AmendedEstimate
from .chosen_regions import ChosenRegions as ChosenRegions
from .count_feasibility import impossible_facts as impossible_facts
from .covariance import CellCovariance as CellCovariance, CellMetric as CellMetric, covariance_of as covariance_of
from .fitting import (
    determines_total as determines_total,
    judge_posterior as judge_posterior,
    judge_release as judge_release,
)
from .imposing import Imposed as Imposed, impose_facts as impose_facts
from .ranges import FactRanges as FactRanges
from .refined_answers import RefinedAnswers as RefinedAnswers
from .refined_release import (
    ImposedFacts as ImposedFacts,
    IndependentCells as IndependentCells,
    Manner as Manner,
    RefinedRelease as RefinedRelease,
    staged_tree_estimate as staged_tree_estimate,
)
from .structural_zeros import StructuralZeros as StructuralZeros, without_rounding as without_rounding
