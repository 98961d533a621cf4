"""Promises of several answers as one text: what was charged once is said once, whoever joins them."""

import re
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, strategies as st

import veilcube as vc
from veilcube.privacy.statement import join_promises

SCHEMA = vc.Schema([vc.Ordinal("age", 0, 9), vc.Nominal("sex", ["F", "M", "X"])])
CUBE = vc.Cube(SCHEMA, np.arange(30).reshape(10, 3))
COUNTED = re.compile(r"\d+ (?:sources|releases|answers)[^:]*: [^;]*as charge \d+")


def charges_in(text: str) -> list[str]:
    return re.findall(r"as charge (\d+)", text)


@pytest.fixture
def ledger(tmp_path: Path) -> vc.Ledger:
    ledger = vc.Ledger(f"sqlite:///{tmp_path}/budget.db")
    ledger.create("d", epsilon=100)
    return ledger


@given(st.lists(st.sampled_from(["charged 1", "charged 2", "part", "uncharged", ""]), max_size=8))
def test_each_charge_is_said_once_and_all_else_as_often_as_it_was_made(kinds: list[str]) -> None:
    words = {
        "charged 1": "Private. Charged to the budget of 'd' as charge 1.",
        "charged 2": "Private. Charged to the budget of 'd' as charge 2 of epsilon 1, the rest with another part.",
        "part": "Private. Charged to the budget of 'd' already, with what was spent on another part of its partition.",
        "uncharged": "Private. Not charged to any ledger.",
        "": "",
    }
    text = join_promises([words[kind] for kind in kinds])
    assert not COUNTED.search(text)
    for kind in ("charged 1", "charged 2"):
        assert text.count(words[kind]) == (kind in kinds)
    for kind in ("part", "uncharged"):
        times = kinds.count(kind)
        assert text.count(words[kind]) == (times > 0)
        assert (f"{times} sources, each: {words[kind]}" in text) == (times > 1)


def test_answers_of_one_charged_release_are_under_one_charge(ledger: vc.Ledger) -> None:
    release = vc.release(CUBE, 1, "identity", ledger=ledger, dataset="d")
    answers = {f"a{age}": release.count(age=age) for age in range(5)}
    with pytest.warns(UserWarning, match="same privacy promise"):
        refined = vc.refine(answers, "a0 + a1 = 5")
    assert refined.privacy == release.privacy.words


def test_two_charged_releases_are_both_named(ledger: vc.Ledger) -> None:
    first, second = (vc.release(CUBE, 1, "identity", ledger=ledger, dataset="d") for _ in range(2))
    with pytest.warns(UserWarning, match="same privacy promise"):
        refined = vc.refine([first.count(age=1), first.count(age=2), second.count(age=1)], "q1 + q2 = 5")
    assert charges_in(refined.privacy) == ["1", "2"]
    assert not COUNTED.search(refined.privacy)


@pytest.mark.parametrize("estimator", [vc.KernelPCA, vc.MaxEntropy])
def test_a_release_that_is_both_history_and_prior_is_named_once(ledger: vc.Ledger, estimator: type) -> None:
    release = vc.release(CUBE, 1, vc.Marginals(k=1), ledger=ledger, dataset="d")
    asked, every = vc.Workload(SCHEMA, [{"age": 3}]), vc.Workload.marginals(SCHEMA, 1)
    for history, prior in [
        (release, {"age": release.marginal("age"), "sex": release.marginal("sex")}),
        ([release, release], release),
        (
            release,
            vc.History(SCHEMA, every, np.ones(13), 1.0, privacy=release.privacy.words),
        ),
    ]:
        said = estimator(prior=prior).fit(history).answer(asked).privacy
        assert said == release.privacy.words


def test_the_answers_of_a_ledger_name_every_charge_once(ledger: vc.Ledger) -> None:
    table = vc.protect(CUBE, ledger=ledger, dataset="d")
    table.noisy_marginal("age", "sex", epsilon=1)
    for sex in ("F", "M", "X"):
        table.partition("sex")[sex].noisy_count(epsilon=2)
    table.noisy_count(epsilon=1)
    said = ledger.history("d").answered.privacy
    assert sorted(charges_in(said)) == ["1", "2", "3"]
    assert not COUNTED.search(said)
