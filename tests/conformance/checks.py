"""The checks that every mechanism inherits, as plain functions, so that a broken copy can be shown to fail them."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from math import ceil, prod

import numpy as np
from numpy.typing import NDArray
from scipy import stats

from conformance.members import MechanismMember
from conformance.small_tables import SCHEMAS, cube_of, neighbour_pairs
from support.seeded import SeededWords
from veilcube.curator.cube import Cube
from veilcube.curator.ledger import Receipt
from veilcube.curator.mechanisms import StagedTreeMechanism
from veilcube.curator.sampling import discrete_laplace
from veilcube.laws.noise import DiscreteLaplace
from veilcube.planner import Plan, plan
from veilcube.privacy import LaplaceEvent, PrivacyUnit, epsilon_of, unit_sensitivity_l2_squared
from veilcube.record import NoisyMeasurement
from veilcube.schema import Ordinal, Schema

# Outputs further than this many scales from both centres are left out of the exact distributions. They hold less than
# exp(-40) of the probability, and the log-ratio of discrete Laplace laws is constant beyond the two centres, so the
# largest ratio is attained inside.
TAIL_SCALES = 40
# Of noise so large that its outputs cannot be listed, those between the centres and this many beyond them are.
MOST_OUTPUTS = 2**20
ROUNDING = 1e-9


@dataclass(frozen=True)
class Draw:
    """One call of the noise sampler: what a mechanism asked for."""

    parameter: Fraction
    shape: tuple[int, ...]


class ZeroNoise:
    """A sampler that adds nothing and remembers what it was asked for."""

    def __init__(self) -> None:
        self.draws: list[Draw] = []

    def __call__(self, parameter: Fraction, shape: tuple[int, ...]) -> NDArray[np.int64]:
        self.draws.append(Draw(Fraction(parameter), tuple(shape)))
        return np.zeros(shape, dtype=np.int64)

    def sharpened(self, noise: NDArray[np.int64], scales: Sequence[Fraction], added: Fraction) -> NDArray[np.int64]:
        return self(sharper_scale(scales, added), noise.shape)


def sharper_scale(scales: Sequence[Fraction], added: Fraction) -> Fraction:
    """Return the scale of noise whose rates add up."""
    return 1 / sum((1 / Fraction(scale) for scale in (*scales, added)), start=Fraction(0))


def plan_of(member: MechanismMember, schema: Schema, epsilon: str, neighbours: str, unit: PrivacyUnit) -> Plan:
    max_rows = unit.max_rows if unit.kind == "person" else None
    return plan(schema, epsilon, member.strategy, neighbours=neighbours, person=unit.column, max_rows=max_rows)


def measure(member: MechanismMember, cube: Cube, chosen: Plan, draw_noise: object) -> tuple[NoisyMeasurement, ...]:
    mechanism = member.mechanism
    if isinstance(mechanism, StagedTreeMechanism):
        mechanism = replace(
            mechanism,
            draw_jointly=getattr(draw_noise, "jointly", mechanism.draw_jointly),
            sharpen=getattr(draw_noise, "sharpened", mechanism.sharpen),
        )
    return mechanism.measure(cube, chosen, Receipt.uncharged(mechanism.claim(chosen)), draw_noise)


def centres_and_scales(member: MechanismMember, cube: Cube, chosen: Plan) -> tuple[NDArray[np.int64], list[Fraction]]:
    """Run the real code path without noise: the centre of each output and the noise around it, by scale or sigma²."""
    recorder = ZeroNoise()
    measured = measure(member, cube, chosen, recorder)
    centres = np.concatenate([part.values.ravel() for part in measured])
    scales = [draw.parameter for draw in recorder.draws for _ in range(prod(draw.shape))]
    assert len(scales) == centres.size, "a published value without noise, or noise that is not published"
    return centres, scales


def differences_of_neighbours(
    member: MechanismMember, schema: Schema, chosen: Plan
) -> tuple[NDArray[np.int64], list[Fraction]]:
    """Return every distinct difference between the centres of neighbouring small tables, and the noise scales."""
    tables, left, right = neighbour_pairs(str(chosen.neighbours), chosen.unit.max_rows)
    traces = [centres_and_scales(member, cube_of(schema, records, chosen.unit), chosen) for records in tables]
    scales = traces[0][1]
    assert all(trace[1] == scales for trace in traces), "the noise scale depends on the data"
    centres = np.stack([trace[0] for trace in traces])
    return np.unique(centres[left] - centres[right], axis=0), scales


def check_sensitivity(member: MechanismMember, neighbours: str, unit: PrivacyUnit) -> None:
    """The declared sensitivity is the largest L1 change over all neighbouring small tables: not less, not more."""
    for schema in SCHEMAS:
        chosen = plan_of(member, schema, "1", neighbours, unit)
        differences, _ = differences_of_neighbours(member, schema, chosen)
        largest = int(np.abs(differences).sum(axis=1).max())
        assert largest == chosen.sensitivity, f"declared {chosen.sensitivity}, found {largest}"


def check_sensitivity_l2(member: MechanismMember, neighbours: str, unit: PrivacyUnit) -> None:
    """The operator's squared L2 sensitivity, brought to the unit, is the largest over all neighbouring small tables."""
    for schema in SCHEMAS:
        chosen = plan_of(member, schema, "1", neighbours, unit)
        differences, _ = differences_of_neighbours(member, schema, chosen)
        largest = int(np.square(differences).sum(axis=1).max())
        rows = (chosen.operator.sensitivity_l2_squared(relation) for relation in ("add-remove", "replace"))
        declared = unit_sensitivity_l2_squared(*rows, unit, chosen.neighbours)
        assert largest == declared, f"declared {declared} in L2, found {largest}"


def check_exact_log_ratio(member: MechanismMember, epsilon: str, neighbours: str, unit: PrivacyUnit) -> None:
    """The exact output distributions of neighbouring tables differ by at most exp(epsilon), on every small table.

    Outputs are independent given the table, so the largest log-ratio is the sum of the largest per output.
    """
    known: dict[tuple[int, Fraction], float] = {}
    for schema in SCHEMAS:
        chosen = plan_of(member, schema, epsilon, neighbours, unit)
        differences, scales = differences_of_neighbours(member, schema, chosen)
        worst = max(
            sum(largest_log_ratio(int(shift), scale, known) for shift, scale in zip(row, scales, strict=True))
            for row in differences
        )
        assert worst <= float(chosen.epsilon) + ROUNDING, f"log-ratio {worst} exceeds epsilon {chosen.epsilon}"


def largest_log_ratio(shift: int, scale: Fraction, known: dict[tuple[int, Fraction], float]) -> float:
    """Return max over integers y of log P(y) - log P(y - shift), by enumeration up to the stated tail."""
    if (shift, scale) not in known:
        law = DiscreteLaplace(scale)
        reach = min(int(TAIL_SCALES * scale), MOST_OUTPUTS) + abs(shift) + 1
        outputs = np.arange(-reach, reach + 1)
        known[shift, scale] = float(np.max(law.log_pmf(outputs) - law.log_pmf(outputs - shift)))
    return known[shift, scale]


def check_event_matches_declared_noise(member: MechanismMember, neighbours: str, unit: PrivacyUnit) -> None:
    """The event states the scale that the sampler is asked for, and costs no more than epsilon."""
    for schema in SCHEMAS:
        chosen = plan_of(member, schema, "2/3", neighbours, unit)
        claim = member.mechanism.claim(chosen)
        _, scales = centres_and_scales(member, cube_of(schema, (0, 3), unit), chosen)
        assert isinstance(claim.event, LaplaceEvent)
        assert {claim.event.scale} == set(scales)
        assert epsilon_of(claim.event) <= claim.epsilon == chosen.epsilon
        assert (claim.unit, claim.neighbours) == (unit, chosen.neighbours)
        assert claim.proof.startswith("docs/")


def check_drawn_noise(member: MechanismMember, seed: int) -> None:
    """The noise that really comes out follows the law that the release declares (chi-square, seeded sampler)."""
    schema = Schema([Ordinal("age", 1, member.most_cells)])
    chosen = plan_of(member, schema, "1/3", "add-remove", PrivacyUnit.row())
    cube = Cube(schema, np.full(schema.shape, 5))
    source = SeededWords(seed)
    measured = measure(member, cube, chosen, lambda scale, shape: discrete_laplace(scale, shape, source=source))
    (exact,) = measure(member, cube, chosen, ZeroNoise())
    noise = (measured[0].values - exact.values).ravel()
    law = measured[0].noise
    width = max(int(law.scale) // 10, 1)
    last = ceil(4 * law.scale / width)
    ends = width * np.arange(-last, last + 1)
    ratio = np.exp(-1 / float(law.scale))
    # P(X <= k) is 1 - p^(k+1) / (1+p) from 0 on, and p^(-k) / (1+p) below.
    upto = np.where(ends >= 0, 1 - ratio ** (np.abs(ends) + 1.0) / (1 + ratio), ratio ** np.abs(ends) / (1 + ratio))
    expected = np.diff([0.0, *upto, 1.0]) * noise.size
    observed = np.bincount(np.searchsorted(ends, noise), minlength=expected.size)
    assert stats.chisquare(observed, expected).pvalue > 1e-4, "the noise drawn is not the noise declared"
