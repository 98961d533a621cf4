"""Laplace and Gaussian noise are compared at one promise; the plan says which it took and why."""

from dataclasses import replace
from fractions import Fraction
from math import sqrt

import numpy as np
import pytest

from veilcube.errors import PlanError, PrivacyError
from veilcube.planner import Identity, Marginals, Plan, plan
from veilcube.privacy import epsilon_of, rho_of
from veilcube.query import Workload
from veilcube.schema import Ordinal, Schema

FEW = Schema([Ordinal("age", 1, 60), Ordinal("floor", 1, 4)])
MANY = Schema([Ordinal(name, 1, 5) for name in "abcdefghijklmn"])
DELTA = Fraction(1, 10**9)


def test_few_measurements_take_laplace_noise_and_many_tables_gaussian_noise() -> None:
    few, many = plan(FEW, 1, delta=DELTA), plan(MANY, 1, "marginals", delta=DELTA)
    assert (few.family, many.family) == ("laplace", "gaussian")
    # What keeps the promise costs no more than it: pure epsilon, or the rho of the pair.
    assert epsilon_of(few.event) <= 1
    assert many.rho is not None
    assert rho_of(many.event) <= many.rho
    assert few.expected_error == plan(FEW, 1).expected_error
    assert many.expected_error < 0.5 * plan(MANY, 1, "marginals").expected_error


@pytest.mark.parametrize("promise", [{"epsilon": 1, "delta": DELTA}, {"rho": Fraction(1, 10)}])
@pytest.mark.parametrize(("schema", "strategy"), [(FEW, "tree"), (MANY, "marginals")], ids=["few", "many"])
def test_the_reason_names_the_errors_of_both_families(
    schema: Schema, strategy: str, promise: dict[str, Fraction]
) -> None:
    chosen = plan(schema, strategy=strategy, **promise)
    by_family = {option.family: option.expected_error for option in chosen.candidates}
    assert set(by_family) == {"laplace", "gaussian"}
    assert chosen.expected_error == min(by_family.values()) == by_family[chosen.family]
    assert chosen.reason.startswith(f"{chosen.family.capitalize()} noise was taken")
    for error in by_family.values():
        assert f"{error:.4g}" in chosen.reason
    ratio = chosen.sensitivity / sqrt(chosen.sensitivity_l2_squared)
    assert f"changes the measurements {ratio:.3g} times as much in sum" in chosen.reason
    assert chosen.to_dict()["reason"] == chosen.reason


def test_epsilon_alone_leaves_no_choice_and_no_reason() -> None:
    chosen = plan(FEW, 1)
    assert chosen.reason == ""
    assert {option.family for option in chosen.candidates} == {"laplace"}
    assert not {"reason", "noise", "delta", "rho"} & set(chosen.to_dict())


def test_of_two_staged_trees_the_better_one_is_taken() -> None:
    schema = Schema([Ordinal("age", 1, 128)])
    assert plan(schema, rho=Fraction(1, 10), strategy="staged tree").family == "gaussian"
    assert plan(schema, 1, "staged tree", delta=DELTA).family == "laplace"


def test_a_promise_that_only_one_family_can_keep_says_so() -> None:
    # Laplace noise would need a scale above 2^40; Gaussian noise lives on delta.
    chosen = plan(FEW, Fraction(1, 10**13), Identity(), delta=Fraction(1, 10))
    assert chosen.family == "gaussian"
    assert "the only one that can be drawn" in chosen.reason


def width(chosen: Plan, epsilon: Fraction, family: str) -> float:
    promise = chosen.promise.scaled(epsilon / chosen.epsilon)
    other = replace(chosen, promise=promise, family=family)  # type: ignore[arg-type]
    return float(np.sqrt(np.mean(np.square(other.half_widths()))))


@pytest.mark.parametrize(("error", "family"), [(3, "laplace"), (30, "laplace"), (3000, "gaussian")])
def test_the_smallest_epsilon_is_found_on_either_side_of_the_switch(error: float, family: str) -> None:
    # At a tenth of a percent of delta, Gaussian noise is the lower one below some epsilon, also on single cells.
    found = plan(FEW, error=error, delta=Fraction(1, 1000), strategy="identity")
    assert found.family == family
    assert found.delta == Fraction(1, 1000)
    assert width(found, found.epsilon, family) <= error
    smaller = found.epsilon * Fraction(998, 1000)
    assert min(width(found, smaller, each) for each in ("laplace", "gaussian")) > error
    assert len(str(float(found.epsilon)).split("e")[0].replace(".", "").lstrip("0")) <= 4


@pytest.mark.parametrize("error", [5, 200, 1e5])
def test_tables_reach_an_error_with_less_epsilon_beside_a_delta(error: float) -> None:
    found = plan(MANY, error=error, delta=DELTA, strategy="marginals")
    assert found.family == "gaussian"
    assert found.epsilon < plan(MANY, error=error, strategy="marginals").epsilon
    assert plan(MANY, found.epsilon, "marginals", delta=DELTA).expected_error == found.expected_error


def test_an_error_that_any_noise_keeps_gets_the_smallest_epsilon_there_is() -> None:
    assert 0 < plan(MANY, error=1e30, delta=DELTA, strategy="marginals").epsilon < 1e-10


@pytest.mark.parametrize(
    ("words", "message"),
    [
        ({"epsilon": 1, "delta": 0}, "delta=0 is pure"),
        ({"epsilon": 1, "delta": 1}, "must be below 1"),
        ({"epsilon": 1, "delta": 1.5}, "must be below 1"),
        ({"epsilon": 1, "delta": -1e-9}, "delta must be a number"),
        ({"epsilon": 1, "delta": "x"}, "delta must be a number"),
        ({"epsilon": 1, "delta": float("nan")}, "delta must be a number"),
        ({"delta": 1e-9}, "needs the epsilon that it goes with"),
        ({"epsilon": 1, "rho": 0.1}, "a promise of its own"),
        ({"rho": 0.1, "delta": 1e-9}, "a promise of its own"),
        ({"rho": 0}, "rho must be a finite number"),
        ({"rho": -1}, "rho must be a finite number"),
        ({"rho": 1e-90}, "rho must be a finite number"),
        ({"rho": 1e-30}, "rho is so small that the noise's sigma would exceed 2\\*\\*40"),
    ],
)
def test_promises_that_contradict_themselves_are_refused_in_one_sentence(
    words: dict[str, object], message: str
) -> None:
    with pytest.raises(PrivacyError, match=message) as refusal:
        plan(FEW, strategy="identity", **words)  # type: ignore[arg-type]
    assert "\n" not in str(refusal.value)


@pytest.mark.parametrize("words", [{"rho": 0.1}, {"epsilon": 1, "delta": 1e-9}])
def test_an_error_and_a_budget_are_not_given_together(words: dict[str, object]) -> None:
    with pytest.raises(PlanError, match="cannot both be given"):
        plan(FEW, error=5, **words)  # type: ignore[arg-type]


def test_multipliers_that_were_given_are_kept_under_either_noise() -> None:
    schema = Schema([Ordinal("a", 1, 3), Ordinal("b", 1, 4)])
    chosen = plan(schema, rho=1, strategy=Marginals(1, (2, 5)), workload=Workload.marginals(schema, 1))
    assert all(option.strategy == Marginals(1, (2, 5)) for option in chosen.candidates)
    assert chosen.sensitivity_l2_squared == 29
