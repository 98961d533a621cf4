"""Every step of a staged tree publishes the noise that it declares, and a scale 3% off is noticed at any step.

What is proved in docs/proofs/staged-tree.md is tested here.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from fractions import Fraction

import numpy as np
import pytest
from numpy.typing import NDArray

from conformance.checks import sharper_scale
from support.seeded import SeededWords
from support.staged_trees import EveryLevel
from veilcube.curator.cube import Cube
from veilcube.curator.ledger import Receipt
from veilcube.curator.mechanisms import StagedTreeMechanism, staged as staged_tree
from veilcube.curator.sampling import discrete_laplace, sharpened_laplace
from veilcube.planner import plan
from veilcube.planner.staged.design import StagedDesign
from veilcube.record import NoisyMeasurement
from veilcube.schema import Ordinal, Schema

CELLS = 2**18
# At least 32,768 values a part: a scale 3% off moves the mean size of the noise by 5 of its standard deviations.
MOST_DEVIATIONS = 3.5


class FineLevels(EveryLevel):
    """Runs of four cells, of two, and cells: enough nodes at each step for a test of their noise."""

    def design(self, schema: Schema) -> StagedDesign:
        return StagedDesign((2, 1, 0), (Fraction(1, 4), Fraction(3, 10), Fraction(9, 20)), (3.0, 3.0))


class PairsAndCells(EveryLevel):
    def design(self, schema: Schema) -> StagedDesign:
        return StagedDesign((1, 0), (Fraction(2, 5), Fraction(3, 5)), (3.0,))


@dataclass(frozen=True)
class Course:
    """Which nodes stop, and what is published then: the scales, and after which wrong part others are wrong too."""

    strategy: EveryLevel
    stops: Callable[[NDArray[np.int64]], NDArray[np.bool_]]
    scales: tuple[Fraction, ...]
    follows: dict[int, int]


COURSES = {
    # Every second node: nobody stops beside it, so that its own value is sharpened.
    "alone": Course(
        FineLevels(),
        lambda places: places % 2 == 0,
        (Fraction(20), Fraction(5), Fraction(50, 3), Fraction(20, 3), Fraction(100, 9)),
        {0: 1, 2: 3},
    ),
    # Two neighbours of four, which are measured together.
    "together": Course(
        PairsAndCells(),
        lambda places: places % 4 < 2,
        (Fraction(25, 2), Fraction(25, 3), Fraction(25, 3)),
        {},
    ),
}
each_course = pytest.mark.parametrize("course", COURSES.values(), ids=COURSES.keys())


def published(
    monkeypatch: pytest.MonkeyPatch, course: Course, wrong_part: int | None, factor: Fraction
) -> tuple[tuple, Cube]:
    """Measure a cube, the noise of one part drawn with a wrong scale."""
    decide = {"stops": course.stops, "is_small": lambda places: places >= 0}
    for name, rule in decide.items():
        monkeypatch.setattr(staged_tree._Course, name, lambda _self, _level, nodes, _least, rule=rule: rule(nodes))
    schema = Schema([Ordinal("position", 1, CELLS)])
    chosen = plan(schema, "1/5", course.strategy)
    cube, source, drawn = Cube(schema, np.arange(CELLS) % 5), SeededWords(41), []

    def is_wrong() -> bool:
        drawn.append(None)
        return len(drawn) - 1 == wrong_part

    def draw(scale: Fraction, shape: tuple[int, ...]) -> NDArray[np.int64]:
        return discrete_laplace(scale * factor if is_wrong() else scale, shape, source=source)

    def sharpen(noise: NDArray[np.int64], scales: Sequence[Fraction], added: Fraction) -> NDArray[np.int64]:
        if is_wrong():
            return discrete_laplace(sharper_scale(scales, added) * factor, noise.shape, source=source)
        return sharpened_laplace(noise, scales, added, source=source)

    mechanism = StagedTreeMechanism(sharpen=sharpen)
    return mechanism.measure(cube, chosen, Receipt.uncharged(mechanism.claim(chosen)), draw), cube


def deviations(part: NoisyMeasurement, cube: Cube) -> float:
    """Return by how many standard deviations the mean size of a part's noise misses what it declares."""
    sizes = np.abs(part.values - part.operator.apply(cube.exact_counts))
    p = np.exp(-1 / float(part.noise.scale))
    mean = 2 * p / (1 - p**2)
    return float((sizes.mean() - mean) / np.sqrt((part.noise.variance - mean**2) / sizes.size))


@each_course
def test_the_noise_of_every_step_has_the_declared_scale(monkeypatch: pytest.MonkeyPatch, course: Course) -> None:
    parts, cube = published(monkeypatch, course, None, Fraction(1))
    assert min(part.values.size for part in parts) >= 32_768
    assert tuple(part.noise.scale for part in parts) == course.scales
    assert max(abs(deviations(part, cube)) for part in parts) < MOST_DEVIATIONS


@pytest.mark.parametrize("factor", [Fraction(97, 100), Fraction(103, 100)], ids=["too little", "too much"])
@pytest.mark.parametrize(
    ("name", "wrong_part"), [(name, part) for name, course in COURSES.items() for part in range(len(course.scales))]
)
def test_a_scale_three_percent_off_is_noticed_at_every_step(
    monkeypatch: pytest.MonkeyPatch, name: str, wrong_part: int, factor: Fraction
) -> None:
    parts, cube = published(monkeypatch, COURSES[name], wrong_part, factor)
    missed = [abs(deviations(part, cube)) > MOST_DEVIATIONS for part in parts]
    follower = COURSES[name].follows.get(wrong_part)
    assert missed[wrong_part]
    assert not any(wrong for part, wrong in enumerate(missed) if part not in (wrong_part, follower))


@each_course
def test_noises_of_different_steps_are_uncorrelated(monkeypatch: pytest.MonkeyPatch, course: Course) -> None:
    parts, cube = published(monkeypatch, course, None, Fraction(1))
    noises = [(part.values - part.operator.apply(cube.exact_counts))[:32_768] for part in parts]
    correlations = np.corrcoef(np.array(noises, dtype=np.float64)) - np.eye(len(parts))
    assert np.abs(correlations).max() < 4 / np.sqrt(32_768)
