"""``veilcube history``: past answers listed, learned from and asked again, at no cost and in both manners of speech."""

import json
import sqlite3
from contextlib import closing
from pathlib import Path

import numpy as np
import pytest

import veilcube as vc
from support.command_line import Call, caller
from veilcube.curator.mechanisms.protected import sums as sums_module
from veilcube.errors import BudgetExceededError

SCHEMA = vc.Schema([vc.Ordinal("age", 20, 59), vc.Nominal("sex", ["Female", "Male"])])
COUNTS = np.outer(np.linspace(10, 60, 40).astype(int), [2, 3])
CUBE = vc.Cube(SCHEMA, COUNTS)


@pytest.fixture
def call(capfd: pytest.CaptureFixture[str]) -> Call:
    return caller(capfd)


@pytest.fixture
def ledger(tmp_path: Path) -> vc.Ledger:
    """Return a ledger with some answers and no budget left."""
    ledger = vc.Ledger(tmp_path / "budget.db")
    table = vc.protect(CUBE, ledger=ledger, dataset="people", epsilon=3, analyst="Ada")
    table.noisy_marginal("age", epsilon=1)
    table.noisy_marginal("sex", epsilon=1)
    table.where(age=(30, 49)).noisy_sum("age", epsilon=1)
    return ledger


def test_what_was_drawn_by_rank_is_shown_as_values_of_the_attribute(tmp_path: Path, call: Call) -> None:
    ledger = vc.Ledger(tmp_path / "budget.db")
    table = vc.protect(CUBE, ledger=ledger, dataset="people", epsilon=3000)
    drawn = [table.noisy_min("age", epsilon=1000), table.noisy_max("age", epsilon=1000)]
    drawn.append(table.where(age=(30, 49)).noisy_quantile("age", 0.5, epsilon=1000))
    shown = call("history", "show", str(ledger.path), "people").out.splitlines()[2:]
    words = [
        "minimum of age of all rows",
        "maximum of age of all rows",
        "quantiles 1/2 of age of rows where age is 30..49",
    ]
    for line, said, answer in zip(shown, words, drawn, strict=True):
        assert line.endswith(f"  {answer.value:g}")
        assert said in line


def test_quantiles_are_shown_without_the_ends_of_their_intervals(tmp_path: Path, call: Call) -> None:
    ledger = vc.Ledger(tmp_path / "budget.db")
    table = vc.protect(CUBE, ledger=ledger, dataset="people", epsilon=3000)
    few = table.noisy_quantiles("age", [0.25, 0.75], epsilon=1000, method="tree")
    table.noisy_quantiles("age", [0.1, 0.3, 0.5, 0.7, 0.9], epsilon=1000, method="split")
    first, second = call("history", "show", str(ledger.path), "people").out.splitlines()[2:]
    assert first.endswith("  " + ", ".join(f"{value:g}" for value in few.value))
    assert second.endswith(", ...")


def test_show_lists_what_was_answered(ledger: vc.Ledger, call: Call) -> None:
    shown = call("history", "show", str(ledger.path), "people")
    assert shown.code == 0
    assert "count by age of all rows" in shown.out
    assert "sum of age of rows where age is 30..49" in shown.out
    assert ", ..." in shown.out
    facts = json.loads(call("history", "show", str(ledger.path), "people", "--json").out)
    assert [len(answer["values"]) for answer in facts["answers"]] == [40, 2, 1]
    assert facts["answers"][2]["question"]["powers"] == {"age": 1}
    assert facts["answers"][2]["scales"] == ["49"]


@pytest.mark.parametrize("method", ["kernel-pca", "max-entropy"])
def test_new_questions_are_answered_from_past_ones(ledger: vc.Ledger, call: Call, method: str) -> None:
    texts = ["age < 30 AND sex = 'Male'", "SELECT sex, COUNT(*) FROM people GROUP BY sex"]
    done = call("history", "answer", str(ledger.path), "people", *texts, "--method", method, "--json")
    results = json.loads(done.out)["results"]
    assert [row["group"] for row in results] == [[], ["Female"], ["Male"]]
    exact = [COUNTS[:10, 1].sum(), COUNTS[:, 0].sum(), COUNTS[:, 1].sum()]
    # Sexes were measured; how ages and sexes go together was not, so that answer is a guess from both.
    for row, truth, error in zip(results, exact, (0.35, 0.05, 0.05), strict=True):
        assert row["low"] <= row["value"] <= row["high"]
        assert row["value"] == pytest.approx(truth, rel=error)
    spoken = call("history", "answer", str(ledger.path), "people", *texts, "--method", method)
    assert "GROUP BY sex Female" in spoken.out
    assert "nothing was charged" in spoken.out
    assert ledger.budget("people").spent == 3


@pytest.mark.parametrize("method", ["kernel-pca", "max-entropy"])
def test_integrating_tells_what_was_gained_and_saves_it(
    ledger: vc.Ledger, call: Call, tmp_path: Path, method: str
) -> None:
    out = tmp_path / "improved.json"
    words = ("history", "integrate", str(ledger.path), "people", "--method", method)
    facts = json.loads(call(*words, "--out", str(out), "--json").out)
    assert facts["past answers"] == 43
    assert facts["total"] == pytest.approx(COUNTS.sum(), rel=0.05)
    saved = json.loads(out.read_text())
    assert len(saved["answers"]) == 43
    assert saved["answers"][0]["query"] == [{"age": [0, 0]}]
    again = call(*words, "--out", str(out))
    assert (again.code, "exists already" in again.err) == (9, True)
    assert "nothing charged" in call(*words, "--out", str(out), "--force").out


@pytest.mark.parametrize(
    ("words", "code", "sentence"),
    [
        (("answer", "people", "height > 3"), 5, "there is no attribute 'height'"),
        (("answer", "nobody", "age > 30"), 8, "has no dataset 'nobody'"),
        (("answer", "silent", "age > 30"), 8, "no history to learn from"),
        (("integrate", "silent"), 8, "no history to learn from"),
        (("integrate", "people", "--total", "-3"), 5, "number of rows"),
        (("answer", "people", "age > 30", "--confidence", "2"), 5, "confidence must lie"),
    ],
)
def test_bad_input_is_one_sentence(
    ledger: vc.Ledger, call: Call, words: tuple[str, ...], code: int, sentence: str
) -> None:
    ledger.create("silent", 1)
    command, dataset, *rest = words
    done = call("history", command, str(ledger.path), dataset, *rest)
    assert (done.code, done.err.count("\n")) == (code, 1)
    assert sentence in done.err


def test_answers_under_several_schemas_need_a_choice(ledger: vc.Ledger, call: Call, tmp_path: Path) -> None:
    other = vc.Schema([vc.Ordinal("age", 20, 30)])
    ledger.create("both", 2)
    for cube in (CUBE, vc.Cube(other, np.full(11, 50))):
        vc.protect(cube, ledger=ledger, dataset="both").noisy_marginal("age", epsilon=1)
    assert "several schemas" in call("history", "answer", str(ledger.path), "both", "age < 25").err
    other.to_toml(tmp_path / "other.toml")
    words = ("history", "answer", str(ledger.path), "both", "age < 25", "--schema", str(tmp_path / "other.toml"))
    assert json.loads(call(*words, "--json").out)["results"][0]["value"] == pytest.approx(250, abs=40)


def test_a_refusal_offers_what_history_can_tell(ledger: vc.Ledger) -> None:
    table = vc.protect(CUBE, ledger=ledger, dataset="people")
    with pytest.raises(BudgetExceededError) as refusal:
        table.where(sex="Male").noisy_count(epsilon=1)
    sentence = str(refusal.value)
    assert "the whole budget of 3 is spent" in sentence
    assert "past answers tell it at no cost as" in sentence
    with pytest.raises(BudgetExceededError, match=r"past answers tell its 80 values at no cost"):
        table.noisy_marginal("age", "sex", epsilon=1)
    assert ledger.budget("people").spent == 3


def test_a_refusal_builds_no_query_where_answers_or_groups_are_too_many(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def built(_: object) -> None:
        pytest.fail("queries were built for a refusal")

    for module in ("session.protecting", "curator.ledger.history"):
        monkeypatch.setattr(f"veilcube.{module}.linear_queries", built)
    schema = vc.Schema([vc.Ordinal("x", 0, 59), vc.Ordinal("y", 0, 59)])
    for dataset in ("many answers", "many groups"):
        table = vc.protect(vc.Cube(schema, np.ones(schema.shape, int)), None, tmp_path / "new.db", dataset, 1)
        past, asked = (table, table.where(x=(0, 5))) if dataset == "many answers" else (table.where(x=1), table)
        past.noisy_marginal("x", "y", epsilon="1/2")
        with pytest.raises(BudgetExceededError) as refusal:
            asked.noisy_marginal("x", "y", epsilon=1)
        assert "past answers" not in str(refusal.value)


@pytest.mark.parametrize("damage", ["DELETE FROM schemas", "UPDATE answers SET question = '{}'"])
def test_show_calls_a_ledger_damaged_that_lost_its_schemas_or_questions(
    ledger: vc.Ledger, call: Call, damage: str
) -> None:
    with closing(sqlite3.connect(ledger.path)) as connection:
        for trigger in ("schemas_not_deleted", "answers_not_updated"):
            connection.execute(f"DROP TRIGGER {trigger}")
        connection.execute(damage)
        connection.commit()
    done = call("history", "show", str(ledger.path), "people")
    assert (done.code, done.err.count("\n")) == (8, 1)
    assert "is damaged; restore a backup" in done.err


def test_a_refusal_offers_nothing_where_there_is_no_history(tmp_path: Path) -> None:
    table = vc.protect(CUBE, ledger=tmp_path / "new.db", dataset="people", epsilon=1)
    with pytest.raises(BudgetExceededError) as refusal:
        table.noisy_count(epsilon=2)
    assert "past answers" not in str(refusal.value)
    assert all(proof.startswith("docs/proofs/protected-tables.md") for proof in sums_module.PROOFS.values())
