"""The paper's examples: the loss by the linear program beside densities of refined answers under two neighbours."""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

import veilcube as vc
from benchmarks.papers.privelet.verdict import Verdict

PART = "privacy"
SEED = 8
AT_ONCE = 500_000
WINDOW = 0.25
# How far, in standard errors, a simulated figure may lie from the exact one.
LARGEST_ERROR = 4.0
GRADES = {"A": 31.5, "B": 52.25, "C": 40.75, "D": 9.5, "F": 12.0, "passed": 130.0, "all": 149.5}
GRADE_FACTS = ["A + B + C + D = passed", "F + passed = all", "A + B = 80"]
REFINED_GRADES = [29.625, 50.375, 41.59375, 10.34375, 14.78125, 131.9375, 146.71875]
CELLS = {"A": 0, "B": 1, "C": 2, "D": 3, "F": 4}

Floats = NDArray[np.float64]


@dataclass(frozen=True)
class Ratio:
    """The logarithm of the ratio of two densities at one place: simulated, exact, and the program's bound of it."""

    example: str
    place: float
    simulated: float
    stderr: float
    exact: float
    loss: float


@dataclass(frozen=True)
class Example:
    """A refined answer: the weights of its noises, their scale, and how far its mean shifts between neighbours.

    ``log_density`` is that of its noise, up to a constant.
    """

    name: str
    weights: tuple[float, ...]
    scale: float
    shift: float
    loss: float
    log_density: Callable[[Floats], Floats]
    places: tuple[float, ...]


def examples() -> tuple[Example, ...]:
    """Return Example 1 and the appendix for two k, at epsilon 1."""
    first = vc.refinement_privacy(B=[1, 1], pairs=[([1, 0], [0, 0])], epsilon=1.0, coordinates=[0])
    found = [Example("Example 1", (0.5, -0.5), 1.0, 1.0, first.loss, lambda z: _two(z, 0.5), (1.5, 2.5, 3.5))]
    for k in (2, 5):
        share = 1 / (k + 1)
        check = vc.refinement_privacy(
            A=np.array([[share, share], [0.0, 1.0]]),
            D=[share, 0],
            B=[k, -1],
            pairs=[([1, 0], [0, 1])],
            epsilon=1.0,
            coordinates=[0],
        )
        density = _density_of_two(2 * share)
        found.append(Example(f"appendix, k = {k}", (share, share), 2.0, 1.0, check.loss, density, (1.0, 1.75, 2.5)))
    return tuple(found)


def _two(z: Floats, scale: float) -> Floats:
    """Return the log density of the sum of two Laplace noises of one scale, up to a constant."""
    size = np.abs(z) / scale
    return np.asarray(np.log1p(size) - size)


def _density_of_two(scale: float) -> Callable[[Floats], Floats]:
    return lambda z: _two(z, scale)


def simulate(example: Example, draws: int) -> list[Ratio]:
    """Count how often the refined answer falls near some places under either table."""
    random = np.random.default_rng(SEED)
    places = np.array(example.places)
    counts = np.zeros((2, len(places)))
    for start in range(0, draws, AT_ONCE):
        size = (min(AT_ONCE, draws - start), len(example.weights))
        noise = random.laplace(0, example.scale, size) @ np.array(example.weights)
        for table, mean in enumerate((example.shift, 0.0)):
            counts[table] += (np.abs(noise[:, np.newaxis] + mean - places) < WINDOW / 2).sum(axis=0)
    logs = np.log(counts[0] / counts[1])
    stderr = np.sqrt(1 / counts[0] + 1 / counts[1])
    within = np.linspace(-WINDOW / 2, WINDOW / 2, 101)
    masses = [
        np.exp(example.log_density(places[:, np.newaxis] - mean + within)).sum(axis=1) for mean in (example.shift, 0.0)
    ]
    exact = np.log(masses[0] / masses[1])
    rows = zip(example.places, logs.tolist(), stderr.tolist(), exact.tolist(), strict=True)
    return [Ratio(example.name, *row, example.loss) for row in rows]


def judge_privacy(ratios: list[Ratio]) -> list[Verdict]:
    """Return the loss beside the paper's, the simulated densities beside the exact ones, and the grades."""
    wanted = {"Example 1": 2.0, "appendix, k = 2": 1.5, "appendix, k = 5": 3.0}
    found = [
        Verdict(
            PART, f"{one.name}: loss / epsilon", one.loss, low=wanted[one.name] - 1e-7, high=wanted[one.name] + 1e-7
        )
        for one in examples()
    ]
    worst = max(abs(one.simulated - one.exact) / one.stderr for one in ratios)
    found.append(Verdict(PART, "log ratios, simulated against exact", worst, "standard errors", high=LARGEST_ERROR))
    beyond = max(one.simulated - 3 * one.stderr - one.loss for one in ratios)
    found.append(Verdict(PART, "log ratios beyond the loss", max(beyond, 0.0), high=0.0))
    return found + _judge_grades()


def _judge_grades() -> list[Verdict]:
    refined = vc.refine(GRADES, GRADE_FACTS, covariance=1.0)
    query = {name: np.eye(5)[cell] for name, cell in CELLS.items()}
    query |= {"passed": np.array([1.0, 1, 1, 1, 0]), "all": np.ones(5)}
    whole = vc.refinement_privacy(GRADE_FACTS, query=query, epsilon=1.0)
    safe = vc.refinement_privacy(GRADE_FACTS[:2], query=query, epsilon=1.0)
    off = float(np.abs(refined.value - REFINED_GRADES).max())
    return [
        Verdict(PART, "grades: largest difference from the exact refinement", off, high=1e-7),
        Verdict(PART, "grades, definitions only: loss / epsilon", safe.loss, high=1 + 1e-9, note=safe.explanation[0]),
        Verdict(PART, "grades, with 'A + B = 80': loss / epsilon", whole.loss, note=whole.explanation[0]),
    ]
