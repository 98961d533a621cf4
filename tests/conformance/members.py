"""Who is checked: a mechanism or an estimator registers here once and inherits every check of this folder."""

from dataclasses import dataclass

from veilcube.analyst.estimate.base import Estimator
from veilcube.analyst.estimate.least_squares import LeastSquares
from veilcube.curator.mechanisms import IdentityMechanism, Mechanism
from veilcube.planner import Identity, Strategy


@dataclass(frozen=True)
class MechanismMember:
    name: str
    strategy: Strategy
    mechanism: Mechanism


@dataclass(frozen=True)
class EstimatorMember:
    name: str
    estimator: Estimator
    strategies: tuple[Strategy, ...]


MECHANISMS = (MechanismMember("identity", Identity(), IdentityMechanism()),)
ESTIMATORS = (EstimatorMember("least_squares", LeastSquares(), (Identity(),)),)
