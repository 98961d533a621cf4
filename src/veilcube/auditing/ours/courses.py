"""What a measuring mechanism published in one run, and what that costs for every pair of neighbours.

Whatever a step depends on was published before it. So given the outputs, all matrices and laws of a course are fixed,
and the largest log-ratio of the outputs of two neighbours is a sum over independent noisy values: exact, and needing no
list of outputs. A value that was sharpened is its successor plus noise that depends on no table, and adds nothing
(docs/proofs/sharpened-noise.md). A replay shows that nothing but outputs decided: with the noise that gives it the same
outputs, a neighbour must take the same steps.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from math import prod

import numpy as np

from veilcube.auditing.callables import Pair, Replay, SmallTables, epsilon_spent, exceeds
from veilcube.auditing.ours.strategies import StrategyMechanism
from veilcube.auditing.report import AuditFinding, Witness
from veilcube.auditing.statistics import show_epsilon
from veilcube.curator import Cube
from veilcube.curator.sampling import discrete_gaussian, discrete_laplace, joint_laplace, sharpened_laplace
from veilcube.operators import Operator
from veilcube.privacy import Promise
from veilcube.record import NoisyMeasurement, drop_superseded
from veilcube.system import Integers

# Tables on which a mechanism of several steps is run: each run is one course.
COURSES, REPLAYED = 40, 120

Published = tuple[NoisyMeasurement, ...]


@dataclass(frozen=True)
class Draw:
    """What a mechanism asked of its noise."""

    parameter: Fraction
    shape: tuple[int, ...]


class RecordedSampler:
    """Noise as production code draws it, of one family, which remembers what it was asked for."""

    def __init__(self, family: str) -> None:
        self._draw = discrete_gaussian if family == "gaussian" else discrete_laplace
        self.asked: list[Draw] = []

    def __call__(self, parameter: Fraction, shape: tuple[int, ...]) -> Integers:
        """Draw independent noise."""
        self.asked.append(Draw(Fraction(parameter), tuple(shape)))
        return self._draw(parameter, shape)

    def jointly(self, scales: Sequence[Fraction], trees: int) -> Integers:
        """Draw the noise of the leaves of trees."""
        self.asked += joint_draws(scales, trees)
        return joint_laplace(scales, trees)

    def sharpened(self, noise: Integers, scales: Sequence[Fraction], added: Fraction) -> Integers:
        """Draw what takes the place of earlier noise."""
        self.asked.append(Draw(sharper_scale(scales, added), noise.shape))
        return sharpened_laplace(noise, scales, added)


def joint_draws(scales: Sequence[Fraction], trees: int) -> list[Draw]:
    """Return what a joint draw publishes, the roots first: noise of one scale for each height."""
    return [Draw(Fraction(scale), (trees * 2**depth,)) for depth, scale in enumerate(reversed(scales))]


def sharper_scale(scales: Sequence[Fraction], added: Fraction) -> Fraction:
    """Return the scale of noise whose rates add up."""
    return 1 / sum((1 / Fraction(scale) for scale in (*scales, added)), start=Fraction(0))


class AskedOtherwise(Exception):  # noqa: N818 - a signal between a replay and its check, never an error that leaves
    """A neighbour asks for other noise after the same outputs."""


class ReplayedSampler:
    """The noise with which a neighbour would have given the outputs that were published."""

    def __init__(self, published: Published, neighbour: Cube) -> None:
        self._noise = [part.values - part.operator.apply(neighbour.exact_counts) for part in published]
        self._asked = [Draw(part.noise.parameter, part.values.shape) for part in published]

    def __call__(self, parameter: Fraction, shape: tuple[int, ...]) -> Integers:
        """Return the noise of the next output."""
        if not self._asked:
            raise AskedOtherwise("more is published about a neighbour after the same outputs")
        if self._asked.pop(0) != Draw(Fraction(parameter), tuple(shape)):
            raise AskedOtherwise("noise of another size or law is asked for after the same outputs")
        return self._noise.pop(0)

    def jointly(self, scales: Sequence[Fraction], trees: int) -> Integers:
        """Return the noise of the leaves of trees."""
        for draw in joint_draws(scales, trees):
            leaves = self(draw.parameter, draw.shape)
        return leaves.reshape(trees, -1)

    def sharpened(self, noise: Integers, scales: Sequence[Fraction], added: Fraction) -> Integers:
        """Return what takes the place of earlier noise."""
        return self(sharper_scale(scales, added), noise.shape)

    @property
    def left(self) -> int:
        """How many outputs a neighbour did not ask for."""
        return len(self._asked)


def matrix_of(operator: Operator) -> Integers:
    """Return the matrix of an operator, with a column for each cell."""
    cells = np.eye(prod(operator.cell_shape), dtype=np.int64).reshape(-1, *operator.cell_shape)
    return np.stack([operator.apply(cell).ravel() for cell in cells], axis=1)


def loss_of_course(published: Published, changes: Integers) -> tuple[Sequence[float], Sequence[float]]:
    """Return for each change of the table what outputs cost at most: epsilon of Laplace noise, rho of Gaussian."""
    pure, rho = np.zeros(len(changes)), np.zeros(len(changes))
    for part in drop_superseded(published):
        shifts = (changes @ matrix_of(part.operator).T).astype(np.float64)
        if part.noise.family == "gaussian":
            rho += (shifts**2).sum(axis=1) / (2 * float(part.noise.parameter))
        else:
            pure += np.abs(shifts).sum(axis=1) / float(part.noise.parameter)
    return pure.tolist(), rho.tolist()


def check_courses(mechanism: StrategyMechanism, tables: SmallTables, promise: Promise) -> list[AuditFinding]:
    """Run a mechanism on many tables, and find what each course costs for all neighbours, and who decided it."""
    pairs = list(tables.pairs)
    counts = {table: mechanism.counts_of(tables.rows_of(table)) for pair in pairs for table in (pair.left, pair.right)}
    found: dict[bytes, Pair] = {}
    for pair in pairs:
        found.setdefault((counts[pair.left] - counts[pair.right]).tobytes(), pair)
    distinct = list(found.values())
    changes = np.stack([counts[pair.left] - counts[pair.right] for pair in distinct])
    places = np.random.default_rng(0).permutation(len(pairs))
    worst = Replay(distinct[0], 0.0, 0.0, (), True)
    for place in places[: COURSES if mechanism.has_steps else 1]:
        published = mechanism.publish(tables.rows_of(pairs[place].right))
        for pair, pure, rho in zip(distinct, *loss_of_course(published, changes), strict=True):
            one = Replay(pair, pure, rho, (), True)
            worst = max(worst, one, key=lambda some: (exceeds(some, promise), epsilon_spent(some, promise)))
    replays = [replay(mechanism, tables, pairs[place]) for place in places[:REPLAYED]]
    return [_exact(worst, tables, promise, len(pairs), len(distinct)), _replayed(replays, tables)]


def _exact(worst: Replay, tables: SmallTables, promise: Promise, pairs: int, distinct: int) -> AuditFinding:
    spent, kept = epsilon_spent(worst, promise), not exceeds(worst, promise)
    words = (
        f"The exact output laws of {pairs:,} pairs of neighbours, which differ in {distinct:,} ways, cost epsilon "
        f"{show_epsilon(spent)} at most" + (f" (rho {worst.rho:.6g})." if worst.rho else ".")
    )
    event = f"all noisy values together cost epsilon {show_epsilon(spent)}"
    witness = Witness(tuple(tables.rows_of(worst.pair.left)), tuple(tables.rows_of(worst.pair.right)), event)
    details = {"pairs": pairs, "differences": distinct, "pure epsilon": worst.pure, "rho": worst.rho}
    return AuditFinding("exact", kept, words, spent, witness, details)


def replay(mechanism: StrategyMechanism, tables: SmallTables, pair: Pair) -> tuple[Pair, str]:
    """Give a neighbour the outputs that a table got; returns what it does otherwise, in words, or nothing."""
    sampler = RecordedSampler(mechanism.family)
    published = mechanism.publish(tables.rows_of(pair.left), sampler)
    if [Draw(part.noise.parameter, part.values.shape) for part in published] != sampler.asked:
        return pair, "noise is not declared as it was drawn"
    replayed = ReplayedSampler(published, mechanism.cube_of(tables.rows_of(pair.right)))
    try:
        again = mechanism.publish(tables.rows_of(pair.right), replayed)
    except AskedOtherwise as problem:
        return pair, str(problem)
    if replayed.left:
        return pair, "less is published about a neighbour after the same outputs"
    same = all(
        np.array_equal(one.values, other.values) and rows_of(one) == rows_of(other)
        for one, other in zip(published, again, strict=True)
    )
    return pair, "" if same else "what is measured depends on more than outputs"


def rows_of(part: NoisyMeasurement) -> tuple[str, str]:
    """Return which rows a part measures: what its operator says of itself, and its nodes, regions or groups if any."""
    arrays = {name: array.tolist() for name, array in part.operator.arrays().items()}
    return str(part.operator.to_dict()), str(arrays)


def _replayed(replays: Sequence[tuple[Pair, str]], tables: SmallTables) -> AuditFinding:
    problems = [(pair, words) for pair, words in replays if words]
    told = problems[0][1] if problems else "each took the same steps to the same end"
    words = f"{len(replays):,} neighbours were given the outputs of a table: {told}."
    if not problems:
        return AuditFinding("replay", True, words, None, None, {"replays": len(replays)})
    pair = problems[0][0]
    witness = Witness(tuple(tables.rows_of(pair.left)), tuple(tables.rows_of(pair.right)), told)
    return AuditFinding("replay", False, words, float("inf"), witness, {"replays": len(replays)})
