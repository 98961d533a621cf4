"""Who is checked: a mechanism or an estimator registers here once and inherits every check of this folder.

A strategy is a ``MechanismMember``. It joins the strategies of an ``EstimatorMember`` too if the estimator is fast on
attributes of 500,000 cells: the intervals of each are counted there.
"""

from dataclasses import dataclass

from support.staged_trees import EveryLevel, RichLevels
from support.tree_strategies import PlainTree
from veilcube.analyst.estimate.base.protocol import Estimator
from veilcube.analyst.estimate.linear.least_squares import LeastSquares
from veilcube.analyst.estimate.linear.nonnegative import Nonnegative
from veilcube.analyst.estimate.linear.thresholded import Thresholded
from veilcube.analyst.estimate.marginals.entropy import MarginalMaxEntropy
from veilcube.analyst.estimate.mixture.estimator import LatentClasses
from veilcube.analyst.estimate.partition.observed import Observed
from veilcube.analyst.estimate.partition.shrunken import Shrunken
from veilcube.analyst.estimate.polya.posterior import Posterior
from veilcube.curator.mechanisms import (
    AdaptiveMechanism,
    GroupedTablesMechanism,
    IdentityMechanism,
    LinearMechanism,
    Mechanism,
    StagedTreeMechanism,
)
from veilcube.operators import MarginalsOperator
from veilcube.planner import Adaptive, Family, GroupedTables, Identity, Marginals, Strategy, Wavelet, named_strategy
from veilcube.query import Workload
from veilcube.schema import Schema


@dataclass(frozen=True)
class MechanismMember:
    """``most_cells`` is the longest attribute that the strategy can be planned for.

    ``strategy`` makes every choice itself and determines every cell: the counts are to come back without noise.
    ``rounding`` is what whole multipliers may leave of rho: their squares rarely add up to the whole.
    """

    name: str
    strategy: Strategy
    mechanism: Mechanism
    most_cells: int = 200_000
    rounding: float = 0.0


class EveryTable(Marginals):
    """The table over all attributes, and that of each one: what was counted can be found again from them."""

    def _named(self, schema: Schema) -> Marginals:
        alone = tuple((name,) for name in schema.names) if len(schema) > 1 else ()
        return Marginals(tables=(schema.names, *alone))

    def axes(self, schema: Schema) -> tuple[tuple[int, ...], ...]:
        return self._named(schema).axes(schema)

    def operator(self, schema: Schema) -> MarginalsOperator:
        return self._named(schema).operator(schema)

    def natural_workload(self, schema: Schema) -> Workload:
        return self._named(schema).natural_workload(schema)

    def resolve(self, schema: Schema, workload: Workload, family: Family = "laplace") -> "EveryTable":
        return self


@dataclass(frozen=True)
class EstimatorMember:
    """``most_coverage`` bounds how often 95% intervals may hold the truth: exact ones must not be too wide.

    An estimator that is not linear shrinks towards a prior: it does not give back counts without noise, and its
    intervals are calibrated on smooth tables instead of exact on all: of so many ``attributes``.
    """

    name: str
    estimator: Estimator
    strategies: tuple[Strategy, ...]
    most_coverage: float = 0.965
    is_linear: bool = True
    attributes: int = 1


BLOCKS = Adaptive(partition="blocks", split=0.5, side=4)
GROWN = Adaptive(partition="grow", split=0.7)
TABLES = EveryTable()
MATCHED = named_strategy("matched")

# Mechanisms that publish once, with noise of one scale.
MECHANISMS = (
    MechanismMember("identity", Identity(), IdentityMechanism()),
    MechanismMember("linear", PlainTree(3), LinearMechanism()),
    MechanismMember("wavelet", Wavelet(flat=()), LinearMechanism()),
    MechanismMember("marginals", TABLES, LinearMechanism()),
    MechanismMember("matched", MATCHED, LinearMechanism(), most_cells=4096),
)
# Mechanisms that publish step by step and choose each step by what they have published.
ADAPTIVE = (
    MechanismMember("staged tree", EveryLevel(), StagedTreeMechanism()),
    MechanismMember("staged tree with rich nodes", RichLevels(), StagedTreeMechanism()),
    MechanismMember("blocks", BLOCKS, AdaptiveMechanism()),
    MechanismMember("grown regions", GROWN, AdaptiveMechanism()),
    MechanismMember("grouped tables", GroupedTables(), GroupedTablesMechanism(), rounding=1e-4),
    MechanismMember("full cells", GroupedTables(full_cells=True), GroupedTablesMechanism(), rounding=1e-4),
)
ESTIMATORS = (
    EstimatorMember("least_squares", LeastSquares(), (Identity(), PlainTree(3), Wavelet(flat=()), BLOCKS)),
    # Its intervals are those of least squares, made wider wherever they miss its value: never less than exact ones.
    EstimatorMember("nonnegative", Nonnegative(), (Identity(), PlainTree(3)), most_coverage=1.0),
    EstimatorMember("shrunken", Shrunken(), (BLOCKS, GROWN), most_coverage=1.0, is_linear=False),
    EstimatorMember("observed", Observed(), (BLOCKS,), most_coverage=1.0, is_linear=False),
    EstimatorMember("thresholded", Thresholded(), (Wavelet(flat=()),), most_coverage=1.0, is_linear=False),
    EstimatorMember(
        "thresholded_separately", Thresholded(is_pooled=False), (Wavelet(flat=()),), most_coverage=1.0, is_linear=False
    ),
    # Where a table holds the question it is least squares; what it imputes is in test_imputed.py.
    EstimatorMember("max_entropy", MarginalMaxEntropy(), (TABLES,)),
    # A model of how attributes go together. Tables that no such model made are in test_grouped_tables_coverage.py.
    EstimatorMember(
        "latent_classes", LatentClasses(), (GroupedTables(),), most_coverage=1.0, is_linear=False, attributes=3
    ),
    # Trees over one attribute, which it reads too, are in tests/unit/analyst/estimate/polya/test_measured_nodes.py.
    EstimatorMember("posterior", Posterior(), (EveryLevel(), Identity()), most_coverage=1.0, is_linear=False),
)
