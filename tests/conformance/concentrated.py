"""The checks of mechanisms whose promise is a rho, or an epsilon with a delta, as plain functions.

They take a plan apart as the checks of pure promises do: every pair of neighbouring small tables, and for mechanisms of
several steps everything that they may decide. Given the outputs so far the next step is independent noise around exact
counts, so its divergences are known exactly; those of a course add up (docs/proofs/gaussian-trees.md, Theorem 1).
"""

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from math import sqrt
from pathlib import Path

import numpy as np
from numpy.typing import NDArray
from scipy import stats

from conformance.adaptive import SEEDED, every_course, idle_share, matrix_of
from conformance.checks import ZeroNoise, measure
from conformance.divergences import Renyi, WorstDecisions, has_short_loss, hockey_stick, joined, moved
from conformance.members import MechanismMember
from conformance.small_tables import SCHEMAS, cube_of, neighbour_pairs
from support.seeded import SeededWords
from veilcube.curator.cube import Cube
from veilcube.curator.mechanisms import LinearMechanism
from veilcube.laws import DiscreteGaussian, DiscreteLaplace, Noise
from veilcube.planner import Plan
from veilcube.planner.planning import make_plan
from veilcube.privacy import Neighbours, PrivacyUnit, Promise, noise_events, rho_of
from veilcube.record import NoisyMeasurement, drop_superseded
from veilcube.schema import Ordinal, Schema

ORDERS = (1.01, 1.5, 2.0, 4.0, 16.0, 64.0)
# For what floats lose, relative to order * rho.
ROUNDING = 1e-9
# Sigma² is rounded up to 40 bits.
UNSPENT = 2.0**-38 + ROUNDING
# So many numbers are drawn: then a variance 3% off is 7 standard errors off. Laws that were drawn less often than the
# second number are not judged on their own.
MOST_DRAWN, LEAST_DRAWN = 120_000, 5_000
MOST_Z_SCORE, LEAST_P_VALUE = 4.5, 1e-5
DOCS = Path(__file__).resolve().parents[2]
LAWS = {"laplace": DiscreteLaplace, "gaussian": DiscreteGaussian}


def plan_with(
    member: MechanismMember,
    schema: Schema,
    promise: Promise,
    neighbours: str,
    unit: PrivacyUnit,
    family: str = "gaussian",
) -> Plan:
    """Return the plan of a family, whichever was found best: its strategy is the one that was chosen for that noise."""
    relation = Neighbours.read(neighbours)
    best = make_plan(schema, promise, member.strategy, None, relation, unit)
    strategy = next(one.strategy for one in best.candidates if one.family == family)
    operator = strategy.operator(schema)
    return Plan(schema, strategy, operator, promise, relation, unit, best.workload, family=family)


@dataclass(frozen=True)
class Part:
    """What one step publishes: a matrix, with a column for each cell, and the law of the noise that was drawn."""

    matrix: NDArray[np.int64]
    law: Noise


def parts_of(published: Sequence[NoisyMeasurement], drawn: Sequence[Noise] | None = None) -> list[Part]:
    laws = [part.noise for part in published] if drawn is None else drawn
    return [Part(matrix_of(part.operator), law) for part, law in zip(published, laws, strict=True)]


def courses_of(member: MechanismMember, chosen: Plan) -> list[list[Part]]:
    """Return everything that may be published, by the noise that is drawn for it."""
    if not isinstance(member.mechanism, LinearMechanism):
        return [parts_of(drop_superseded(published)) for published in every_course(member, chosen.schema, chosen)]
    recorder = ZeroNoise()
    published = measure(member, cube_of(chosen.schema, (0, 3), chosen.unit), chosen, recorder)
    assert [draw.shape for draw in recorder.draws] == [part.values.shape for part in published]
    return [parts_of(published, [LAWS[chosen.family](draw.parameter) for draw in recorder.draws])]


def differences_of(chosen: Plan) -> NDArray[np.int64]:
    """Return every difference of neighbouring small tables; of a difference and its negative one."""
    tables, left, right = neighbour_pairs(str(chosen.neighbours), chosen.unit.max_rows)
    counts = np.stack([cube_of(chosen.schema, records, chosen.unit).exact_counts.ravel() for records in tables])
    found = np.unique(counts[left] - counts[right], axis=0)
    first = np.argmax(found != 0, axis=1)
    return found[found[np.arange(len(found)), first] > 0]


def divergences(course: Sequence[Part], differences: NDArray[np.int64], renyi: Renyi) -> NDArray[np.float64]:
    """Return the Rényi divergence of a course's outputs for each difference of two tables."""
    return sum((renyi.of_shifts(part.law, differences @ part.matrix.T).sum(axis=1) for part in course), start=0.0)


def check_renyi(
    member: MechanismMember,
    promise: Promise,
    neighbours: str,
    unit: PrivacyUnit,
    family: str = "gaussian",
    schemas: Sequence[Schema] = SCHEMAS,
) -> None:
    """Whatever is decided, no Rényi divergence of neighbours' outputs exceeds order * rho, and Gaussians reach it."""
    assert promise.rho is not None
    orders = [Renyi(order) for order in ORDERS]
    for schema in schemas:
        chosen = plan_with(member, schema, promise, neighbours, unit, family)
        differences, courses = differences_of(chosen), courses_of(member, chosen)
        for renyi in orders:
            worst = max(float(divergences(course, differences, renyi).max()) for course in courses)
            allowed = renyi.order * float(promise.rho)
            assert worst <= allowed * (1 + ROUNDING), f"divergence {worst} of order {renyi.order} exceeds {allowed}"
            if family == "gaussian" and renyi.order == int(renyi.order):
                least = allowed * (1 - UNSPENT - idle_share(member, chosen))
                assert worst >= least, f"divergence {worst} leaves budget unspent of {allowed}"


def check_every_path_spends_all(member: MechanismMember, promise: Promise) -> None:
    """Whatever is decided, one row more in any cell costs exactly rho, but for what numbers are rounded by."""
    assert promise.rho is not None
    for schema in SCHEMAS:
        chosen = plan_with(member, schema, promise, "add-remove", PrivacyUnit.row())
        rows = np.eye(schema.cells, dtype=np.int64)
        for course in courses_of(member, chosen):
            spent = sum(np.square(part.matrix).sum(axis=0) / (2 * float(part.law.parameter)) for part in course)
            for cost in (spent, divergences(course, rows, Renyi(2.0)) / 2):
                assert (cost <= float(promise.rho) * (1 + ROUNDING)).all(), "a row costs more than rho"
                assert (cost >= float(promise.rho) * (1 - UNSPENT - member.rounding)).all(), "a row costs less than rho"


def check_hockey_stick(member: MechanismMember, promise: Promise, neighbours: str, unit: PrivacyUnit) -> None:
    """The hockey-stick divergence of neighbours' outputs at epsilon is at most delta, whatever is decided."""
    assert promise.rho is not None
    epsilon, delta, rho = (float(number) for number in (promise.epsilon, promise.delta, promise.rho))
    decisions = WorstDecisions(epsilon, rho)
    for schema in SCHEMAS:
        chosen = plan_with(member, schema, promise, neighbours, unit)
        courses = courses_of(member, chosen)
        found = []
        for change in differences_of(chosen):
            steps = [
                [(tuple((part.matrix @ change).tolist()), part.law.parameter) for part in course] for course in courses
            ]
            found.append(_largest(steps, decisions, epsilon))
        assert max(found) <= delta, f"delta is {max(found)} at epsilon {epsilon}, and {delta} is promised"


def _largest(courses: list[list[tuple[tuple[int, ...], Fraction]]], decisions: WorstDecisions, epsilon: float) -> float:
    if len(courses) == len(courses[0]) == 1:
        shifts, sigma_squared = moved(courses[0][0])
        if has_short_loss(shifts, sigma_squared):
            return hockey_stick(shifts, sigma_squared, epsilon)
    return decisions.of(joined(courses))


def check_event(member: MechanismMember, promise: Promise, neighbours: str, unit: PrivacyUnit) -> None:
    """The event states every noise that some course draws and no other, costs rho, and names a theorem that exists."""
    assert promise.rho is not None
    for schema in SCHEMAS:
        chosen = plan_with(member, schema, promise, neighbours, unit)
        claim = member.mechanism.claim(chosen)
        stated = {(event.noise.parameter, event.noise.sensitivity) for event in noise_events(claim.event)}
        assert stated == {(parameter, squared) for parameter, squared in _changes_of(member, chosen).items()}
        assert {event.family for event in noise_events(claim.event)} == {"gaussian"}
        assert promise.rho * (1 - Fraction(UNSPENT)) <= rho_of(claim.event) <= claim.rho == promise.rho
        assert (claim.epsilon, claim.delta) == (promise.epsilon, promise.delta)
        assert (claim.unit, claim.neighbours) == (unit, chosen.neighbours)
        page, _, anchor = claim.proof.partition("#")
        assert f"### {anchor.replace('-', ' ').capitalize()}\n" in (DOCS / page).read_text(encoding="utf-8")


def _changes_of(member: MechanismMember, chosen: Plan) -> dict[Fraction, int]:
    """Return all noise that some course draws, and by how much a unit changes what it is drawn for: squared, at most.

    Steps count sets of rows: a unit changes each by its own sensitivity, times the squared multipliers of all tables.
    """
    found: dict[Fraction, int] = {}
    for course in courses_of(member, chosen):
        for part in course:
            most = int(np.square(part.matrix).sum(axis=0).max())
            found[part.law.parameter] = max(found.get(part.law.parameter, 0), most)
    if isinstance(member.mechanism, LinearMechanism):
        return dict.fromkeys(found, chosen.sensitivity_l2_squared)
    return {parameter: chosen.step_spending.sensitivity_squared * most for parameter, most in found.items()}


def check_drawn_noise(member: MechanismMember, seed: int, fault: Fraction = Fraction(1)) -> None:
    """The noise that really comes out of each step has the variance and the law that are declared for it.

    Of all noise the squares are compared, each in units of its variance; of each law that was drawn often, its classes
    (chi-square). ``fault`` multiplies the sigma² of what is drawn: the check must fail for 97%.
    """
    schema = Schema([Ordinal("age", 1, 1024)])
    chosen = plan_with(member, schema, Promise.read(rho="1/50"), "add-remove", PrivacyUnit.row())
    cube, source = Cube(schema, np.full(schema.shape, 100)), SeededWords(seed)

    def draw(sigma_squared: Fraction, shape: tuple[int, ...]) -> NDArray[np.int64]:
        return SEEDED["gaussian"](sigma_squared * fault, shape, source=source)

    noise: dict[Noise, NDArray[np.int64]] = {}
    while sum(map(len, noise.values())) < MOST_DRAWN:
        for part in measure(member, cube, chosen, draw):
            drawn = (part.values - part.operator.apply(cube.exact_counts)).ravel()
            noise[part.noise] = np.append(noise.get(part.noise, drawn[:0]), drawn)
    squares = np.concatenate([np.square(drawn) / law.variance for law, drawn in noise.items()])
    z_score = abs(squares.mean() - 1) / (squares.std() / sqrt(squares.size))
    assert z_score < MOST_Z_SCORE, f"the noise drawn is not the noise declared: its variance is {squares.mean()} of it"
    for law, drawn in noise.items():
        if drawn.size >= LEAST_DRAWN:
            assert pvalue_of(drawn, law) > LEAST_P_VALUE, f"the noise drawn is not the noise declared: {law}"


def pvalue_of(noise: NDArray[np.int64], law: Noise) -> float:
    """Return how likely a noise as far from its law is, by 40 classes of about equal probability."""
    reach = int(10 * sqrt(law.variance)) + 2
    upto = np.cumsum(law.pmf(np.arange(-reach, reach + 1)))
    ends = np.unique(np.searchsorted(upto, np.arange(1, 40) / 40)) - reach
    expected = np.diff([0.0, *upto[ends + reach], 1.0]) * noise.size
    observed = np.bincount(np.searchsorted(ends, noise), minlength=expected.size)
    return float(stats.chisquare(observed, expected * (observed.sum() / expected.sum())).pvalue)
