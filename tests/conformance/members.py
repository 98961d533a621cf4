"""Who is checked: a mechanism or an estimator registers here once and inherits every check of this folder."""

from dataclasses import dataclass

from support.tree_strategies import PlainTree
from veilcube.analyst.estimate.base import Estimator
from veilcube.analyst.estimate.least_squares import LeastSquares
from veilcube.analyst.estimate.nonnegative import Nonnegative
from veilcube.curator.mechanisms import IdentityMechanism, LinearMechanism, Mechanism
from veilcube.planner import Identity, Strategy


@dataclass(frozen=True)
class MechanismMember:
    name: str
    strategy: Strategy
    mechanism: Mechanism


@dataclass(frozen=True)
class EstimatorMember:
    """``most_coverage`` bounds how often 95% intervals may hold the truth: exact ones must not be too wide."""

    name: str
    estimator: Estimator
    strategies: tuple[Strategy, ...]
    most_coverage: float = 0.965


MECHANISMS = (
    MechanismMember("identity", Identity(), IdentityMechanism()),
    MechanismMember("linear", PlainTree(3), LinearMechanism()),
)
ESTIMATORS = (
    EstimatorMember("least_squares", LeastSquares(), (Identity(), PlainTree(3))),
    # Its intervals are those of least squares, made wider wherever they miss its value: never less than exact ones.
    EstimatorMember("nonnegative", Nonnegative(), (Identity(), PlainTree(3)), most_coverage=1.0),
)
