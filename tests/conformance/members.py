"""Who is checked: a mechanism or an estimator registers here once and inherits every check of this folder."""

from dataclasses import dataclass

from support.refined_trees import EveryLevel, RichLevels
from support.tree_strategies import PlainTree
from veilcube.analyst.estimate.base import Estimator
from veilcube.analyst.estimate.least_squares import LeastSquares
from veilcube.analyst.estimate.nonnegative import Nonnegative
from veilcube.analyst.estimate.posterior import Posterior
from veilcube.analyst.estimate.shrunken import Shrunken
from veilcube.analyst.estimate.thresholded import Thresholded
from veilcube.curator.mechanisms import (
    AdaptiveMechanism,
    IdentityMechanism,
    LinearMechanism,
    Mechanism,
    RefinedTreeMechanism,
)
from veilcube.planner import Adaptive, Identity, Strategy, Wavelet


@dataclass(frozen=True)
class MechanismMember:
    name: str
    strategy: Strategy
    mechanism: Mechanism


@dataclass(frozen=True)
class EstimatorMember:
    """``most_coverage`` bounds how often 95% intervals may hold the truth: exact ones must not be too wide.

    An estimator that is not linear shrinks towards a prior: it does not give back counts without noise, and its
    intervals are calibrated on smooth tables instead of exact on all.
    """

    name: str
    estimator: Estimator
    strategies: tuple[Strategy, ...]
    most_coverage: float = 0.965
    is_linear: bool = True


BLOCKS = Adaptive(partition="blocks", split=0.5, side=4)
GROWN = Adaptive(partition="grow", split=0.7)

# Mechanisms that publish once, with noise of one scale.
MECHANISMS = (
    MechanismMember("identity", Identity(), IdentityMechanism()),
    MechanismMember("linear", PlainTree(3), LinearMechanism()),
    MechanismMember("wavelet", Wavelet(flat=()), LinearMechanism()),
)
# Mechanisms that publish step by step and choose each step by what they have published.
ADAPTIVE = (
    MechanismMember("refined tree", EveryLevel(), RefinedTreeMechanism()),
    MechanismMember("refined tree with rich nodes", RichLevels(), RefinedTreeMechanism()),
    MechanismMember("blocks", BLOCKS, AdaptiveMechanism()),
    MechanismMember("grown regions", GROWN, AdaptiveMechanism()),
)
ESTIMATORS = (
    EstimatorMember("least_squares", LeastSquares(), (Identity(), PlainTree(3), Wavelet(flat=()), BLOCKS)),
    # Its intervals are those of least squares, made wider wherever they miss its value: never less than exact ones.
    EstimatorMember("nonnegative", Nonnegative(), (Identity(), PlainTree(3)), most_coverage=1.0),
    EstimatorMember("shrunken", Shrunken(), (BLOCKS, GROWN), most_coverage=1.0, is_linear=False),
    EstimatorMember("thresholded", Thresholded(), (Wavelet(flat=()),), most_coverage=1.0, is_linear=False),
    # Trees over one attribute, which it reads too, are in tests/unit/analyst/test_measured_nodes.py.
    EstimatorMember("posterior", Posterior(), (EveryLevel(), Identity()), most_coverage=1.0, is_linear=False),
)
