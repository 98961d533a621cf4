"""Answers in the ledger: old files are upgraded, rows are never changed, and all of it is one history."""

import itertools
import os
import signal
import sqlite3
import sys
from contextlib import closing
from fractions import Fraction
from pathlib import Path
from types import FrameType

import numpy as np
import pyarrow as pa
import pytest

import veilcube as vc
from support.command_line import caller
from support.old_ledgers import MOMENT, SCHEMA, old_ledger
from support.statements import laplace_statement
from veilcube.curator.ledger.stores import beside, file
from veilcube.curator.ledger.stores.layout import VERSION
from veilcube.curator.protected.table import private_view
from veilcube.errors import BudgetExceededError, LedgerError
from veilcube.laws import DiscreteLaplace
from veilcube.privacy import Budget
from veilcube.record.questions.question import Question
from veilcube.schema import Region

COUNTS = np.arange(24).reshape(SCHEMA.shape)
CUBE = vc.Cube(SCHEMA, COUNTS)


@pytest.fixture
def ledger(tmp_path: Path) -> vc.Ledger:
    ledger = vc.Ledger(tmp_path / "budget.db")
    ledger.create("people", 10**6)
    return ledger


def change(ledger: vc.Ledger, *statements: str) -> None:
    """Do to the file what another program might."""
    with closing(sqlite3.connect(ledger.path)) as connection:
        for statement in statements:
            connection.execute(statement)
        connection.commit()


# Older files


@pytest.mark.parametrize("version", [1, 2, 3, 4])
@pytest.mark.parametrize(
    "use",
    [
        lambda ledger: ledger.history("people"),
        lambda ledger: ledger.budget("people"),
        lambda ledger: ledger.charge("people", laplace_statement("1/4"), purpose="now"),
        lambda ledger: vc.protect(CUBE, ledger=ledger, dataset="people").noisy_count(epsilon="1/2"),
    ],
)
def test_a_ledger_of_an_earlier_version_is_upgraded_by_whatever_comes_first(
    use: object, version: int, tmp_path: Path
) -> None:
    ledger = old_ledger(tmp_path / "old.db", version)
    use(ledger)
    with closing(sqlite3.connect(ledger.path)) as connection:
        assert connection.execute("PRAGMA user_version").fetchone() == (VERSION,)
    first = ledger.history("people")[0]
    assert (first.epsilon, first.purpose, first.analyst) == (Fraction(1, 4), "long ago", "Ada")
    assert (first.amount, first.currency, first.rho) == (Fraction(1, 4), "epsilon", None)
    ledger.allow("people", "Ada", "1/2")
    assert ledger.shares("people")[0].budget.spent == Fraction(1, 4)
    assert ledger.currency("people") == "epsilon"


@pytest.mark.parametrize("version", [1, 2, 3, 4])
def test_an_upgraded_ledger_has_the_layout_of_a_new_one(tmp_path: Path, ledger: vc.Ledger, version: int) -> None:
    old = old_ledger(tmp_path / "old.db", version)
    old.datasets()
    layouts = []
    for path in (old.path, ledger.path):
        with closing(sqlite3.connect(path)) as connection:
            layouts.append(sorted(connection.execute("SELECT type, name, sql FROM sqlite_master").fetchall()))
            assert connection.execute("PRAGMA integrity_check").fetchone() == ("ok",)
    assert layouts[0] == layouts[1]


def test_what_the_second_version_kept_reads_as_it_was_written(tmp_path: Path) -> None:
    ledger = old_ledger(tmp_path / "old.db", 2)
    count, rank = ledger.history("people").answers
    assert (count.values, count.noise, count.at) == ((97,), DiscreteLaplace(Fraction(4)), MOMENT)
    assert (rank.values, rank.noise) == ((2,), None)
    assert ledger.shares("people")[0].budget == Budget(Fraction(1, 2), Fraction(1, 4))
    assert ledger.history("people").answered.variances == pytest.approx([DiscreteLaplace(Fraction(4)).variance])
    table = vc.protect(CUBE, ledger=ledger, dataset="people", analyst="Ada")
    assert table.noisy_count(epsilon="1/4").value == 97
    assert ledger.budget("people").spent == Fraction(1, 4)


@pytest.mark.parametrize("version", [1, 2, 3, 4])
def test_an_upgrade_that_is_killed_before_any_line_of_it_is_done_by_whoever_comes_next(
    tmp_path: Path, version: int
) -> None:
    path = tmp_path / "old.db"
    for point in itertools.count(1):
        for left_over in tmp_path.iterdir():
            left_over.unlink()
        ledger = old_ledger(path, version)
        was_killed = upgrade_until(point, ledger)
        assert ledger.budget("people") == Budget(Fraction(1), Fraction(1, 4))
        assert len(ledger.history("people").answers) == 2 * (version > 1)
        if not was_killed:
            break
    assert point > 100, "the upgrade was not followed line by line"


def upgrade_until(point: int, ledger: vc.Ledger) -> bool:
    """Open a ledger in a child that is killed before one line of the code that keeps its file; tell whether it was."""
    child = os.fork()
    if child == 0:
        seen = 0

        def watch(frame: FrameType, event: str, _: object) -> object:
            nonlocal seen
            if frame.f_code.co_filename not in {file.__file__, beside.__file__}:
                return None
            seen += event == "line"
            if seen == point:
                os.kill(os.getpid(), signal.SIGKILL)
            return watch

        sys.settrace(watch)
        ledger.budget("people")
        os._exit(0)
    return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == -signal.SIGKILL


# Shares of analysts


@pytest.mark.parametrize("epsilon", ["5/2", 11, "100000001/10000000", 10**9])
def test_a_share_above_the_whole_budget_is_refused_and_the_earlier_one_stays(tmp_path: Path, epsilon: object) -> None:
    ledger = vc.Ledger(tmp_path / "small.db")
    ledger.create("people", 2)
    ledger.allow("people", "Ada", 2)
    for grant in (
        lambda: ledger.allow("people", "Ada", epsilon),
        lambda: ledger.allow("people", "Bob", epsilon),
        lambda: vc.protect(CUBE, ledger=ledger, dataset="people", analyst="Cy", analyst_epsilon=epsilon),
    ):
        with pytest.raises(LedgerError, match="more than the whole budget of 2") as refusal:
            grant()
        assert "at most" in str(refusal.value)
    assert [(share.analyst, share.budget.total) for share in ledger.shares("people")] == [("Ada", 2)]


def test_the_command_refuses_a_share_above_the_whole_budget(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    url = str(tmp_path / "small.db")
    vc.Ledger(url).create("people", 2)
    call = caller(capfd)
    assert call("ledger", "allow", url, "people", "Ada", "--epsilon", "2").code == 0
    refused = call("ledger", "allow", url, "people", "Ada", "--epsilon", "3")
    assert refused.code == LedgerError.exit_code
    assert "whole budget of 2" in refused.err


# Rows that stay


@pytest.mark.parametrize("table", ["answers", "part_charges", "shares", "schemas"])
def test_rows_are_added_and_never_changed(ledger: vc.Ledger, table: str) -> None:
    vc.protect(CUBE, ledger=ledger, dataset="people").partition("sex")["Male"].noisy_count(epsilon=1)
    ledger.allow("people", "Ada", 1)
    for statement in (
        f"DELETE FROM {table}",
        f"UPDATE {table} SET rowid = 9" if table != "schemas" else "DELETE FROM schemas",
    ):
        with pytest.raises(sqlite3.IntegrityError, match="added and never changed"):
            change(ledger, statement)


@pytest.mark.parametrize(
    "damage",
    [
        "UPDATE answers SET outcome = '[1.5]'",
        "UPDATE answers SET outcome = '[" + "9" * 400 + "]'",
        "UPDATE answers SET parameters = '[\"x\"]'",
        "UPDATE answers SET question = '{'||question",
        "UPDATE answers SET statement = '{}'",
        "UPDATE answers SET parameters = '[\"0\"]'",
        "UPDATE schemas SET described = '{}'",
        "DELETE FROM schemas",
        "DELETE FROM answers WHERE id = 1",
    ],
)
def test_damaged_answers_are_refused_in_a_sentence(ledger: vc.Ledger, damage: str) -> None:
    table = vc.protect(CUBE, ledger=ledger, dataset="people")
    table.noisy_count(epsilon=1)
    table.noisy_sum("age", epsilon=1)
    names = [f"{name}_not_{verb}" for name in ("answers", "schemas") for verb in ("updated", "deleted", "replaced")]
    change(ledger, *(f"DROP TRIGGER {name}" for name in names), damage)
    with pytest.raises(LedgerError, match="is damaged; restore a backup"):
        ledger.history("people")


QUESTIONS = {
    "count": lambda table: table.noisy_count(epsilon=1),
    "mean": lambda table: table.noisy_mean("age", epsilon=1),
    "marginal": lambda table: table.noisy_marginal("sex", epsilon=1),
    "maximum": lambda table: table.noisy_max("age", epsilon=1),
    "minimum": lambda table: table.noisy_min("age", epsilon=1, interval="1/2"),
}


@pytest.mark.parametrize("outcome", ["[]", "[1, 2, 3, 4]", "[99]", "[1, -1]"])
@pytest.mark.parametrize("kind", QUESTIONS)
@pytest.mark.parametrize("has_key", [True, False])
def test_stored_values_that_were_changed_are_damage_and_without_the_key_those_that_do_not_fit(
    ledger: vc.Ledger, kind: str, outcome: str, has_key: bool
) -> None:
    fits = {"count": ["[99]"], "mean": ["[1, -1]"], "marginal": ["[1, -1]"]}
    table = vc.protect(CUBE, ledger=ledger, dataset="people")
    QUESTIONS[kind](table)
    change(ledger, "DROP TRIGGER answers_not_updated", f"UPDATE answers SET outcome = '{outcome}'")
    if not has_key:
        Path(f"{ledger.path}.key").unlink()
    if outcome in fits.get(kind, []) and not has_key:
        QUESTIONS[kind](table)
    else:
        with pytest.raises(LedgerError, match="is damaged; restore a backup"):
            QUESTIONS[kind](table)
    assert ledger.budget("people").spent == 1


def test_a_question_that_its_schema_cannot_have_is_refused_as_damage(ledger: vc.Ledger) -> None:
    vc.protect(CUBE, ledger=ledger, dataset="people").noisy_count(epsilon=1)
    wrong = '{"kind": "moment", "powers": {"age": 1000}, "by": [], "where": []}'
    change(ledger, "DROP TRIGGER answers_not_updated", f"UPDATE answers SET question = '{wrong}'")
    with pytest.raises(LedgerError, match="restore a backup"):
        _ = ledger.history("people").answered


def test_lost_rows_about_parts_are_noticed_before_they_give_budget_away(ledger: vc.Ledger) -> None:
    parts = vc.protect(CUBE, ledger=ledger, dataset="people").partition("sex")
    parts["Male"].noisy_count(epsilon=1)
    parts["Female"].noisy_count(epsilon=1)
    change(ledger, "DROP TRIGGER part_charges_not_deleted", "DELETE FROM part_charges WHERE id = 1")
    with pytest.raises(LedgerError, match="damaged"):
        parts["Male"].noisy_sum("age", epsilon=1)


def test_exact_values_are_nowhere_in_the_file(ledger: vc.Ledger) -> None:
    secret = 987_654_321
    cube = vc.Cube(SCHEMA, np.full(SCHEMA.shape, secret))
    vc.protect(cube, ledger=ledger, dataset="people").noisy_marginal("age", "sex", "pay", epsilon="1/1000000")
    assert str(secret).encode() not in ledger.path.read_bytes()


# One history


def test_stored_answers_are_measurements_of_the_table(ledger: vc.Ledger) -> None:
    table = vc.protect(CUBE, ledger=ledger, dataset="people")
    price = 10**4  # so much budget that the noise is nothing, and what is left is the meaning of each query
    table.where("age <= 2 OR sex = 'Male'").noisy_count(epsilon=price)
    table.where(age=(2, 5)).noisy_sum("age", epsilon=price)
    table.noisy_sum("pay", epsilon=price)
    table.noisy_moment({"age": 2, "pay": 1}, epsilon=price)
    table.where(sex="Male").noisy_mean("age", epsilon=price)
    table.where("age > 1 AND (age < 4 OR sex = 'Male')").noisy_marginal("age", "sex", epsilon=price)
    table.partition("sex").noisy_mean("pay", epsilon=price)
    table.partition("age")[3].noisy_count(epsilon=price)
    history = ledger.history("people").answered
    assert len(history) == 1 + 1 + 1 + 1 + 2 + 5 * 2 + 2 * 2 + 1
    assert history.queries.apply(COUNTS) == pytest.approx(history.values)


def test_the_variance_of_an_answer_is_that_of_its_noise(ledger: vc.Ledger) -> None:
    vc.protect(CUBE, ledger=ledger, dataset="people").noisy_sum("pay", epsilon="1/100")
    # Middles are 1/2 and 5/2: whole multiples of 1/2, at most five of them.
    variance = 2 * (5 * 100) ** 2 / 4
    assert ledger.history("people").answered.variances == pytest.approx([variance], rel=1e-3)


def test_other_kinds_of_answers_are_kept_but_are_no_measurements(ledger: vc.Ledger) -> None:
    table = vc.protect(CUBE, ledger=ledger, dataset="people")
    question = Question(SCHEMA, Region.everything(SCHEMA.shape), "rank", {"of": "age", "rank": 1})
    statement = laplace_statement("1/2")
    kept = private_view(table).measure(question, statement, lambda: [4])
    assert private_view(table).desk.recall(question, statement) == kept
    assert private_view(table).desk.recall(question, laplace_statement("1/3")) == kept
    assert private_view(table).desk.recall(question, laplace_statement(1)) is None
    with pytest.raises(LedgerError, match="no history to learn from"):
        _ = ledger.history("people").answered
    table.noisy_count(epsilon=1)
    assert len(ledger.history("people").answered) == 1


def test_histories_of_several_datasets_or_schemas_are_refused(ledger: vc.Ledger) -> None:
    vc.protect(CUBE, ledger=ledger, dataset="people").noisy_count(epsilon=1)
    other = vc.Schema([vc.Ordinal("age", 1, 3)])
    vc.protect(vc.Cube(other, [1, 2, 3]), ledger=ledger, dataset="people").noisy_count(epsilon=1)
    with pytest.raises(LedgerError, match="several schemas"):
        _ = ledger.history("people").answered
    assert ledger.history("people").under(other).answered.schema == other
    vc.protect(CUBE, ledger=ledger, dataset="others", epsilon=1).noisy_count(epsilon=1)
    with pytest.raises(LedgerError, match="several datasets"):
        _ = ledger.history().answered


def test_answers_that_count_other_rows_of_persons_are_not_joined(tmp_path: Path) -> None:
    people = pa.table({"age": [1] * 30, "who": [number // 3 for number in range(30)]})
    schema = vc.Schema([vc.Ordinal("age", 0, 3)])
    ledger = vc.Ledger(tmp_path / "caps.db")
    ledger.create("people", 100)
    for most in (1, 3):
        table = vc.protect(people, schema, ledger=ledger, dataset="people", person="who", max_rows=most)
        table.noisy_count(epsilon=20)
    past = ledger.history("people")
    with pytest.raises(LedgerError, match="at most 1 and 3 rows of a person"):
        vc.KernelPCA().fit(past)
    for most, rows in ((1, 10), (3, 30)):
        assert abs(past.under(schema, max_rows=most).answered.values[0] - rows) < 5
    with pytest.raises(BudgetExceededError) as refusal:
        table.noisy_count(epsilon=500)
    assert "as 30" in str(refusal.value)


def test_a_charge_that_costs_less_than_it_promises_is_damage_unless_it_is_for_a_part(ledger: vc.Ledger) -> None:
    ledger.charge("people", laplace_statement(1), purpose="whole")
    change(ledger, "DROP TRIGGER charges_not_updated", "UPDATE charges SET amount = '1/2'")
    with pytest.raises(LedgerError, match="damaged"):
        ledger.history("people")
