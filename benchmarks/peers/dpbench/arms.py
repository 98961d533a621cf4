"""The arms of the comparison: how a release is made and read. To compare another idea, add a line to ``ARMS``."""

from dataclasses import dataclass

from veilcube.planner import Strategy, Tree


@dataclass(frozen=True)
class Arm:
    """A strategy and an estimator; arms of equal strategies read the same releases."""

    name: str
    strategy: Strategy | str
    estimator: str


# What a user gets who chooses nothing: the arm that the bars are for.
DEFAULT = Arm("auto", "auto", "best")
IDENTITY = Arm("identity", "identity", "least_squares")
LEAST_SQUARES = Arm("tree, least squares", Tree(refine=False), "least_squares")

ARMS: tuple[Arm, ...] = (
    DEFAULT,
    IDENTITY,
    LEAST_SQUARES,
    Arm("tree, non-negative", Tree(refine=False), "nonnegative"),
    Arm("tree, posterior", Tree(refine=False), "posterior"),
    Arm("staged tree, posterior", Tree(refine=True), "posterior"),
)
