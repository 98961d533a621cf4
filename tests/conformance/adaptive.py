"""The checks of mechanisms that publish step by step (docs/proofs/staged-tree.md), as plain functions.

What they publish at a step depends on earlier outputs, so a pair of neighbours is compared output by output: given the
outputs, all parts and scales are fixed, and the log-ratio of their probabilities is a sum over the parts. A value that
was sharpened is its successor plus noise that does not depend on the table (docs/proofs/sharpened-noise.md), so that
it adds nothing to the sum.
"""

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from fractions import Fraction

import numpy as np
import pytest
from numpy.typing import NDArray

from conformance.checks import ROUNDING, Draw, largest_log_ratio, measure, plan_of, sharper_scale
from conformance.chosen_tables import every_choice, every_partition
from conformance.members import MechanismMember
from conformance.small_tables import SCHEMAS, cube_of, neighbour_pairs
from support.seeded import SeededWords
from veilcube.curator.cube import Cube
from veilcube.curator.mechanisms import (
    AdaptiveMechanism,
    GroupedTablesMechanism,
    grouped as grouped_tables,
    partition as adaptive,
    staged as staged_tree,
)
from veilcube.curator.sampling import discrete_gaussian, discrete_laplace, joint_laplace, sharpened_laplace
from veilcube.operators import Operator
from veilcube.planner import Plan
from veilcube.privacy import PrivacyUnit, epsilon_of
from veilcube.privacy.event import noise_events
from veilcube.record import NoisyMeasurement, drop_superseded
from veilcube.schema import Schema

PAIRS_REPLAYED = 25
# How often grouped tables choose for themselves, beside all that they might choose.
OWN_CHOICES = 3
SEEDED: dict[str, Callable[..., NDArray[np.int64]]] = {"laplace": discrete_laplace, "gaussian": discrete_gaussian}


class RecordedNoise:
    """Seeded noise of a family that remembers what it was asked for."""

    def __init__(self, seed: int, family: str = "laplace") -> None:
        self._source, self._sampler = SeededWords(seed), SEEDED[family]
        self.draws: list[Draw] = []

    def __call__(self, parameter: Fraction, shape: tuple[int, ...]) -> NDArray[np.int64]:
        self.draws.append(Draw(Fraction(parameter), tuple(shape)))
        return self._sampler(parameter, shape, source=self._source)

    def jointly(self, scales: Sequence[Fraction], trees: int) -> NDArray[np.int64]:
        self.draws += joint_draws(scales, trees)
        return joint_laplace(scales, trees, source=self._source)

    def sharpened(self, noise: NDArray[np.int64], scales: Sequence[Fraction], added: Fraction) -> NDArray[np.int64]:
        self.draws.append(Draw(sharper_scale(scales, added), noise.shape))
        return sharpened_laplace(noise, scales, added, source=self._source)


def joint_draws(scales: Sequence[Fraction], trees: int) -> list[Draw]:
    """Return what a joint draw publishes, the roots first: noise of one scale for each height."""
    return [Draw(Fraction(scale), (trees * 2**depth,)) for depth, scale in enumerate(reversed(scales))]


class ReplayedNoise:
    """The noise with which another table would have given the outputs that were published."""

    def __init__(self, published: tuple[NoisyMeasurement, ...], cube: Cube) -> None:
        self._noise = [part.values - part.operator.apply(cube.exact_counts) for part in published]
        self._asked = [Draw(part.noise.parameter, part.values.shape) for part in published]

    def __call__(self, parameter: Fraction, shape: tuple[int, ...]) -> NDArray[np.int64]:
        assert self._asked, "more is published about a neighbour after the same outputs"
        asked = Draw(Fraction(parameter), tuple(shape))
        assert self._asked.pop(0) == asked, "a step depends on more than earlier outputs"
        return self._noise.pop(0)

    def jointly(self, scales: Sequence[Fraction], trees: int) -> NDArray[np.int64]:
        for draw in joint_draws(scales, trees):
            leaves = self(draw.parameter, draw.shape)
        return leaves.reshape(trees, -1)

    def sharpened(self, noise: NDArray[np.int64], scales: Sequence[Fraction], added: Fraction) -> NDArray[np.int64]:
        return self(sharper_scale(scales, added), noise.shape)

    @property
    def is_used_up(self) -> bool:
        return not self._asked


def check_steps_depend_on_outputs_only(member: MechanismMember, epsilon: str, neighbours: str, seed: int) -> None:
    """With the noise that gives it the outputs of its neighbour, a table takes the same steps to the same end."""
    for schema in SCHEMAS:
        check_steps_of_plan(member, plan_of(member, schema, epsilon, neighbours, PrivacyUnit.row()), seed)


def check_steps_of_plan(member: MechanismMember, chosen: Plan, seed: int, pairs: int = PAIRS_REPLAYED) -> None:
    """The same for one plan, and for some pairs of neighbours."""
    schema, unit = chosen.schema, chosen.unit
    tables, left, right = neighbour_pairs(str(chosen.neighbours), unit.max_rows)
    for number in np.random.default_rng(seed).choice(left.size, size=pairs, replace=False):
        ours, theirs = (cube_of(schema, tables[side[number]], unit) for side in (left, right))
        check_steps_of_pair(member, chosen, ours, theirs, seed + int(number))


def check_steps_of_pair(member: MechanismMember, chosen: Plan, ours: Cube, theirs: Cube, seed: int) -> None:
    """The same for one pair of neighbours."""
    recorder = RecordedNoise(seed, chosen.family)
    published = measure(member, ours, chosen, recorder)
    declared = [Draw(part.noise.parameter, part.values.shape) for part in published]
    assert declared == recorder.draws, "noise is not declared as it was drawn"
    replay = ReplayedNoise(published, theirs)
    again = measure(member, theirs, chosen, replay)
    assert replay.is_used_up, "less is published about a neighbour after the same outputs"
    for one, other in zip(published, again, strict=True):
        np.testing.assert_array_equal(one.values, other.values)
        assert nodes_of(one) == nodes_of(other), "which nodes are measured depends on more than outputs"


def nodes_of(part: NoisyMeasurement) -> tuple[str, str]:
    """Return which rows a part measures: what its operator says of itself, and its nodes, regions or groups if any."""
    arrays = {name: array.tolist() for name, array in part.operator.arrays().items()}
    return str(part.operator.to_dict()), str(arrays)


@dataclass
class ScriptedStops:
    """Decisions in place of those of the posterior: as a script says, and no where it has ended, which is noted."""

    script: list[bool]
    taken: list[bool] = field(default_factory=list)

    def stops(self, _: object, level: int, active: NDArray[np.int64], threshold: float) -> NDArray[np.bool_]:
        begin, end = len(self.taken), len(self.taken) + active.size
        self.taken += [number < len(self.script) and self.script[number] for number in range(begin, end)]
        return np.array(self.taken[begin:], dtype=bool)

    is_small = stops

    def is_rich(self, refinement: object, level: int, active: NDArray[np.int64], least: float) -> NDArray[np.bool_]:
        """Only whole nodes may be rich, so the others need no decision."""
        whole = refinement.tree.is_whole(level)[active]
        found = np.zeros(active.size, dtype=bool)
        found[whole] = self.stops(refinement, level, active[whole], least)
        return found

    def next_script(self) -> list[bool] | None:
        """Return the script after this one, as binary numbers are counted; None after the last."""
        kept = list(self.taken)
        while kept and kept[-1]:
            kept.pop()
        return [*kept[:-1], True] if kept else None


def every_course(member: MechanismMember, schema: Schema, chosen: Plan) -> Iterator[tuple[NoisyMeasurement, ...]]:
    """Carry out a mechanism once for everything that it may decide: all patterns of stops, partitions, or tables."""
    cube = cube_of(schema, (0, 1, 1, 4), chosen.unit)
    if isinstance(member.mechanism, AdaptiveMechanism):
        for labels in every_partition(schema.cells):
            with pytest.MonkeyPatch.context() as patch:
                patch.setattr(adaptive, "_chosen_regions", lambda *_, found=labels: found.reshape(schema.shape))
                yield measure(member, cube, chosen, RecordedNoise(1, chosen.family))
        return
    if isinstance(member.mechanism, GroupedTablesMechanism):
        for tables in every_choice(schema, chosen.family):
            with pytest.MonkeyPatch.context() as patch:
                patch.setattr(grouped_tables, "are_cells_full", lambda *_: False)
                patch.setattr(grouped_tables, "choose_tables", lambda *_, found=tables: found)
                yield measure(member, cube, chosen, RecordedNoise(1, chosen.family))
        if chosen.design.rows_share:
            with pytest.MonkeyPatch.context() as patch:
                patch.setattr(grouped_tables, "are_cells_full", lambda *_: True)
                yield measure(member, cube, chosen, RecordedNoise(1, chosen.family))
        yield from (measure(member, cube, chosen, RecordedNoise(seed, chosen.family)) for seed in range(OWN_CHOICES))
        return
    script: list[bool] | None = []
    seen = set()
    while script is not None:
        decisions = ScriptedStops(script)
        with pytest.MonkeyPatch.context() as patch:
            for name in ("stops", "is_small", "is_rich"):
                decide = getattr(decisions, name)
                patch.setattr(staged_tree._Course, name, lambda *given, decide=decide: decide(*given))
            published = measure(member, cube, chosen, RecordedNoise(1, chosen.family))
        course = tuple((nodes_of(part), part.noise.parameter) for part in published)
        if course not in seen:
            seen.add(course)
            yield published
        script = decisions.next_script()


@dataclass(frozen=True)
class Losses:
    """Per course and pair of neighbours: the largest log-ratio of outputs, and per course and cell a single row's."""

    of_pairs: NDArray[np.float64]
    of_cells: NDArray[np.float64]


def losses(member: MechanismMember, schema: Schema, chosen: Plan) -> Losses:
    """Return the exact privacy loss of every course for every difference of neighbouring small tables."""
    tables, left, right = neighbour_pairs(str(chosen.neighbours), chosen.unit.max_rows)
    counts = np.stack([cube_of(schema, records, chosen.unit).exact_counts.ravel() for records in tables])
    differences = np.unique(counts[left] - counts[right], axis=0)
    rows = np.eye(counts.shape[1], dtype=np.int64)
    known: dict[tuple[int, Fraction], float] = {}
    changes = np.concatenate([differences, rows])
    table = np.array(
        [losses_of_changes(published, changes, known) for published in every_course(member, schema, chosen)]
    )
    return Losses(table[:, : len(differences)], table[:, len(differences) :])


def losses_of_changes(
    published: tuple[NoisyMeasurement, ...], changes: NDArray[np.int64], known: dict[tuple[int, Fraction], float]
) -> NDArray[np.float64]:
    """Return the largest log-ratio of outputs for each change of the table, of one course."""
    found = np.zeros(len(changes))
    for part in drop_superseded(published):
        shifts = changes @ matrix_of(part.operator).T
        sizes, places = np.unique(shifts, return_inverse=True)
        ratios = np.array([largest_log_ratio(int(shift), part.noise.scale, known) for shift in sizes])
        found += ratios[places].reshape(shifts.shape).sum(axis=1)
    return found


def matrix_of(operator: Operator) -> NDArray[np.int64]:
    """Return the matrix of an operator, with a column for each cell."""
    cells = np.eye(int(np.prod(operator.cell_shape)), dtype=np.int64).reshape(-1, *operator.cell_shape)
    return np.stack([operator.apply(cell).ravel() for cell in cells], axis=1)


def check_losses(member: MechanismMember, epsilon: str, neighbours: str, unit: PrivacyUnit) -> None:
    """Whatever stops, neighbours' outputs differ by at most exp(epsilon), and by that much for some neighbours."""
    for schema in SCHEMAS:
        chosen = plan_of(member, schema, epsilon, neighbours, unit)
        worst = losses(member, schema, chosen).of_pairs.max(axis=1)
        least = float(chosen.epsilon) * (1 - idle_share(member, chosen))
        assert worst.max() <= float(chosen.epsilon) + ROUNDING, f"log-ratio {worst.max()} exceeds epsilon {epsilon}"
        assert worst.max() >= least - ROUNDING, f"log-ratio {worst.max()} leaves budget unspent"


def idle_share(member: MechanismMember, chosen: Plan) -> float:
    """Return the share of the budget for what an exchanged row leaves as it is: all rows, if these are counted.

    Whoever counts them is charged for it all the same.
    """
    if not isinstance(member.mechanism, GroupedTablesMechanism) or str(chosen.neighbours) == "add-remove":
        return 0.0
    first, power = chosen.design.first, 1 if chosen.family == "laplace" else 2
    prices = [times**power for times in first.multipliers]
    idle = [price for price, table in zip(prices, first.tables, strict=True) if first.sizes(table) == (1,)]
    return float(chosen.design.rows_share) + float(chosen.design.share) * sum(idle) / sum(prices)


def check_every_path_spends_all(member: MechanismMember, epsilon: str) -> None:
    """Whatever stops, one row more in any cell costs exactly epsilon."""
    for schema in SCHEMAS:
        chosen = plan_of(member, schema, epsilon, "add-remove", PrivacyUnit.row())
        spent = losses(member, schema, chosen).of_cells
        np.testing.assert_allclose(spent, float(chosen.epsilon), rtol=1e-9)


def check_event(member: MechanismMember, neighbours: str, unit: PrivacyUnit) -> None:
    """The event costs epsilon, and states the sensitivity and every scale that some course draws, and no other."""
    for schema in SCHEMAS:
        chosen = plan_of(member, schema, "2/3", neighbours, unit)
        claim = member.mechanism.claim(chosen)
        drawn = largest_columns(part for course in every_course(member, schema, chosen) for part in course)
        stated = {(event.scale, event.sensitivity) for event in noise_events(claim.event)}
        assert stated == {(scale, chosen.step_sensitivity * most) for scale, most in drawn.items()}
        assert epsilon_of(claim.event) == claim.epsilon == chosen.epsilon
        assert (claim.unit, claim.neighbours) == (unit, chosen.neighbours)
        assert claim.proof.startswith("docs/proofs/")


def largest_columns(parts: Iterable[NoisyMeasurement]) -> dict[Fraction, int]:
    """Return by how much a row changes, at most, all that has noise of one scale: once for each table that counts it.

    Parts of disjoint cells, such as the nodes of a tree, are one measurement for whoever is in one of them.
    """
    found: dict[Fraction, int] = {}
    for part in parts:
        most = int(np.abs(matrix_of(part.operator)).sum(axis=0).max())
        found[part.noise.charged] = max(found.get(part.noise.charged, 0), most)
    return found
