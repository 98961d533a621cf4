"""Releases under a delta or a rho: what they state, what they refuse, and when a delta is warned of."""

import warnings
from fractions import Fraction
from pathlib import Path

import numpy as np
import pytest

import veilcube as vc
from veilcube.errors import PlanError, PrivacyError

SCHEMA = vc.Schema([vc.Ordinal("age", 1, 20)])
CUBE = vc.Cube(SCHEMA, np.arange(20))
ROWS = 190


def test_a_release_states_the_promise_that_was_planned() -> None:
    chosen = vc.plan(SCHEMA, rho="1/10", strategy="wavelet")
    made = vc.release(CUBE, plan=chosen)
    assert (made.privacy.rho, made.privacy.epsilon, made.privacy.delta) == (chosen.rho, chosen.epsilon, chosen.delta)
    assert made.plan["noise"] == chosen.noise.to_json()
    assert made.plan["reason"] == chosen.reason


def test_laplace_noise_that_keeps_a_pair_is_stated_as_pure() -> None:
    made = vc.release(CUBE, epsilon=1, delta=1e-9, strategy="identity")
    assert (made.privacy.epsilon, made.privacy.delta, made.privacy.rho) == (1, 0, None)
    assert "Laplace noise was taken" in str(made.plan["reason"])


def test_a_plan_whose_pair_is_kept_by_laplace_noise_does_not_waste_a_budget_in_rho(tmp_path: Path) -> None:
    ledger = vc.Ledger(tmp_path / "budget.db")
    ledger.create("ages", rho=1)
    chosen = vc.plan(SCHEMA, epsilon=1, delta=1e-9, strategy="identity")
    assert chosen.family == "laplace"
    with pytest.raises(PlanError, match=r"costs a budget in rho 0\.5 where they cost 0\.0149731"):
        vc.release(CUBE, plan=chosen, ledger=ledger, dataset="ages")
    assert ledger.budget("ages").spent == 0
    vc.release(CUBE, epsilon=1, delta=1e-9, strategy="identity", ledger=ledger, dataset="ages")
    assert ledger.budget("ages").spent == chosen.rho


@pytest.mark.parametrize(
    "other", [{"epsilon": 1}, {"rho": 0.2}, {"epsilon": 1, "delta": 1e-8}, {"epsilon": 2, "delta": 1e-9}]
)
def test_a_plan_is_not_released_under_another_promise(other: dict[str, float]) -> None:
    chosen = vc.plan(SCHEMA, 1, delta=1e-9)
    with pytest.raises(PlanError, match="another epsilon, delta, rho") as refusal:
        vc.release(CUBE, plan=chosen, **other)  # type: ignore[arg-type]
    assert "\n" not in str(refusal.value)
    assert vc.release(CUBE, plan=chosen, epsilon=1, delta=1e-9).privacy.epsilon == 1


@pytest.mark.parametrize(
    ("words", "message"),
    [
        ({"epsilon": 1, "delta": 0}, "delta=0 is pure"),
        ({"epsilon": 1, "delta": 1}, "must be below 1"),
        ({"epsilon": 1, "delta": 3}, "must be below 1"),
        ({"epsilon": 1, "delta": -0.1}, "delta must be a number"),
        ({"delta": 1e-9}, "needs the epsilon"),
        ({"rho": 1, "epsilon": 1}, "a promise of its own"),
        ({"rho": 1e-30}, "rho is so small"),
    ],
)
def test_promises_that_contradict_themselves_are_refused(words: dict[str, float], message: str) -> None:
    with pytest.raises(PrivacyError, match=message):
        vc.release(CUBE, strategy="identity", **words)  # type: ignore[arg-type]


def warned(**words: object) -> list[str]:
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        vc.release(CUBE, strategy="wavelet", **words)  # type: ignore[arg-type]
    return [str(one.message) for one in caught]


def test_a_delta_above_one_over_the_rows_is_warned_of_where_their_number_is_public() -> None:
    (told,) = warned(epsilon=1, delta=Fraction(1, ROWS - 1), neighbours="replace")
    assert "above 1/190" in told
    assert warned(epsilon=1, delta=Fraction(1, ROWS), neighbours="replace") == []


def test_nothing_tells_the_number_of_rows_where_it_is_private() -> None:
    assert warned(epsilon=1, delta=0.5) == []
    # A rho is no choice of delta, and Laplace noise has none.
    assert warned(rho=1, neighbours="replace") == []
    assert warned(epsilon=1, neighbours="replace") == []
