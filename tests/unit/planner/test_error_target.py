"""The reverse: from a wanted error to the epsilon that reaches it."""

import dataclasses
from fractions import Fraction

import numpy as np
import pytest

from veilcube.curator.cube import Cube
from veilcube.errors import PlanError
from veilcube.laws.summed_noise import half_widths
from veilcube.operators import OperatorDefaults
from veilcube.planner import Identity, Tree, plan
from veilcube.query import Workload
from veilcube.schema import Ordinal, Schema
from veilcube.session import release

SCHEMA = Schema([Ordinal("age", 1, 60), Ordinal("floor", 1, 4)])


@dataclasses.dataclass(frozen=True)
class SilentOperator(OperatorDefaults):
    cell_shape: tuple[int, ...]


def half_width(epsilon: Fraction, strategy: object, confidence: float) -> float:
    widths = plan(SCHEMA, epsilon, strategy).half_widths(confidence=confidence)
    return float(np.sqrt(np.mean(np.square(widths))))


@pytest.mark.parametrize("strategy", [Identity(), Tree(refine=False)], ids=["identity", "tree"])
@pytest.mark.parametrize(("error", "confidence"), [(50, 0.95), (3.5, 0.5), (4000, 0.99)])
def test_the_epsilon_reaches_the_error_and_the_next_smaller_one_does_not(
    strategy: object, error: float, confidence: float
) -> None:
    found = plan(SCHEMA, strategy=strategy, error=error, confidence=confidence).epsilon
    assert half_width(found, strategy, confidence) <= error
    assert half_width(found * Fraction(998, 1000), strategy, confidence) > error
    assert len(str(float(found)).replace(".", "").lstrip("0")) <= 4


def test_half_widths_under_the_identity_are_the_exact_ones() -> None:
    chosen = plan(SCHEMA, 0.3, "identity")
    cells = np.prod(chosen.workload.high - chosen.workload.low + 1, axis=1)
    np.testing.assert_allclose(chosen.half_widths(), half_widths(chosen.noise, cells, 0.95))


@pytest.mark.parametrize("strategy", ["identity", "tree", "marginals", "matched"])
def test_half_widths_are_those_of_the_answers_that_a_release_gives(strategy: str) -> None:
    chosen = plan(SCHEMA, 0.5, strategy)
    workload = Workload(SCHEMA, [{"age": (1, 10)}, {"floor": 2}, "age IN (3, 7) AND floor > 1", "age = 1 AND age = 2"])
    answers = release(Cube(SCHEMA, np.full(SCHEMA.shape, 9)), plan=chosen).answer(workload, estimator="least_squares")
    np.testing.assert_allclose(chosen.half_widths(workload), (answers.high - answers.low) / 2, rtol=1e-9)
    np.testing.assert_allclose(chosen.stddev(workload), answers.stddev, rtol=1e-9)


def test_a_strategy_that_does_not_tell_its_noise_has_no_half_widths() -> None:
    silent = dataclasses.replace(plan(SCHEMA, 1), operator=SilentOperator(SCHEMA.shape))
    with pytest.raises(PlanError, match="does not tell"):
        silent.half_widths()


def test_candidates_are_compared_at_the_epsilon_that_was_found() -> None:
    chosen = plan(SCHEMA, error=20, workload=Workload.prefixes(SCHEMA))
    for candidate in chosen.candidates:
        alone = plan(SCHEMA, chosen.epsilon, candidate.strategy, Workload.prefixes(SCHEMA))
        assert candidate.expected_error == pytest.approx(alone.expected_error)


def test_an_error_that_any_noise_keeps_gets_the_smallest_epsilon_there_is() -> None:
    assert 0 < plan(SCHEMA, error=1e30).epsilon < 1e-8


def test_epsilon_and_error_together_are_refused_even_if_epsilon_is_the_default() -> None:
    with pytest.raises(PlanError, match="cannot both be given"):
        plan(SCHEMA, epsilon=1.0, error=50)
    assert plan(SCHEMA).epsilon == 1


@pytest.mark.parametrize("error", [0, -5, float("nan"), float("inf"), "50", True])
def test_an_impossible_error_is_refused(error: object) -> None:
    with pytest.raises(PlanError, match="error"):
        plan(SCHEMA, error=error)


def test_an_error_that_needs_too_large_an_epsilon_says_what_is_possible() -> None:
    schema = Schema([Ordinal("x", 1, 4096)])
    with pytest.raises(PlanError, match=r"epsilon above 100, .* the least that can be planned is \d"):
        plan(schema, error=1e-6, strategy="tree")


@pytest.mark.parametrize("confidence", [0, 1, 95, -0.5, float("nan"), None])
def test_a_confidence_that_is_none_is_refused(confidence: object) -> None:
    with pytest.raises(PlanError, match="confidence"):
        plan(SCHEMA, error=50, confidence=confidence)
