"""The budget ledger: exact budgets, refusals that leave nothing behind, receipts that pay once, files gone wrong."""

import copy
import dataclasses
import os
import pickle
import random
import re
import shutil
import sqlite3
import subprocess
import sys
import tempfile
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from datetime import UTC, datetime, timedelta
from fractions import Fraction
from pathlib import Path

import pytest

from support.statements import laplace_statement
from veilcube.curator.ledger import Ledger, Receipt
from veilcube.curator.ledger.stores.layout import VERSION
from veilcube.errors import BudgetExceededError, LedgerError, PrivacyError, VeilcubeError
from veilcube.privacy import Budget, Currency, LaplaceEvent, Neighbours, PrivacyStatement, PrivacyUnit, SequentialEvent


@pytest.fixture
def book(tmp_path: Path) -> Ledger:
    return Ledger(tmp_path / "budget.db")


@pytest.fixture
def charged(book: Ledger) -> Ledger:
    book.create("adult", 1)
    book.charge("adult", laplace_statement("1/3"), purpose="first", analyst="Ada")
    return book


def change(ledger: Ledger, *statements: str) -> None:
    """Do to the file what another program might."""
    with closing(sqlite3.connect(ledger.path)) as connection:
        for statement in statements:
            connection.execute(statement)
        connection.commit()


# Creating


def test_a_new_dataset_has_its_whole_budget(book: Ledger) -> None:
    assert book.create("adult", 0.1) == Budget(Fraction(1, 10))
    assert book.budget("adult") == Budget(Fraction(1, 10), Fraction(0))


def test_creating_the_same_again_changes_nothing_and_tells_what_was_spent(charged: Ledger) -> None:
    assert charged.create("adult", "1") == Budget(Fraction(1), Fraction(1, 3))
    assert len(charged.datasets()) == 1


def test_another_total_for_an_existing_dataset_is_refused(charged: Ledger) -> None:
    for try_again in (charged.create, charged.ensure):
        with pytest.raises(LedgerError, match=r"exists already.*epsilon 1, not 2; .*fixed once"):
            try_again("adult", 2)
    assert charged.budget("adult").total == 1


def test_neighbours_and_person_stated_at_creation_are_kept(book: Ledger) -> None:
    book.create("visits", 2, neighbours="replace", person="patient_id")
    (account,) = book.datasets()
    assert (account.name, account.neighbours, account.unit) == ("visits", Neighbours.REPLACE, "person:patient_id")
    assert book.create("visits", 2, neighbours="replace", person="patient_id") == Budget(Fraction(2))


@pytest.mark.parametrize("other", [{"neighbours": "replace"}, {"person": "doctor_id"}])
def test_other_terms_for_an_existing_dataset_are_refused(book: Ledger, other: dict[str, str]) -> None:
    book.create("visits", 2, neighbours="add-remove", person="patient_id")
    for try_again in (book.create, book.ensure):
        with pytest.raises(LedgerError, match=r"exists already in the ledger with"):
            try_again("visits", 2, **other)


def test_terms_cannot_be_added_to_an_existing_dataset_but_the_first_charge_may_bring_them(book: Ledger) -> None:
    book.create("adult", 1)
    with pytest.raises(LedgerError, match="first charge"):
        book.create("adult", 1, neighbours="replace")
    assert book.ensure("adult", 1, neighbours="replace").left == 1
    book.charge("adult", laplace_statement("1/2", neighbours="replace"), purpose="first")
    assert book.create("adult", 1, neighbours="replace").left == Fraction(1, 2)


def test_ensure_creates_what_is_missing_and_finds_what_exists(book: Ledger) -> None:
    assert book.ensure("adult", 1) == Budget(Fraction(1))
    book.charge("adult", laplace_statement("1/4"), purpose="some")
    assert book.ensure("adult", 1) == Budget(Fraction(1), Fraction(1, 4))


@pytest.mark.parametrize(
    "epsilon", [0, -1, float("nan"), float("inf"), "much", None, True, 10**10, Fraction(1, 3**800)]
)
def test_a_total_that_is_no_sensible_epsilon_is_refused_and_makes_no_file(book: Ledger, epsilon: object) -> None:
    with pytest.raises(PrivacyError):
        book.create("adult", epsilon)
    assert not book.path.exists()


@pytest.mark.parametrize("name", ["", " ", " adult", "a\nb", "a\0b", "\ud800", "x" * 201, 7, None])
def test_a_name_that_cannot_be_told_apart_on_paper_is_refused(book: Ledger, name: object) -> None:
    with pytest.raises(LedgerError, match="name of a dataset"):
        book.create(name, 1)
    assert not book.path.exists()


def test_unknown_neighbours_are_refused(book: Ledger) -> None:
    with pytest.raises(PrivacyError, match="add-remove"):
        book.create("adult", 1, neighbours="next-door")


def test_the_smallest_float_is_a_budget_too(book: Ledger) -> None:
    assert book.create("adult", 5e-324).total == book.budget("adult").total == Fraction("5e-324")


# Charging


def test_ten_charges_of_a_tenth_spend_one_exactly_and_an_eleventh_is_refused(book: Ledger) -> None:
    book.create("adult", 1)
    for _ in range(10):
        book.charge("adult", laplace_statement("1/10"), purpose="tenth")
    assert book.budget("adult") == Budget(Fraction(1), Fraction(1))
    with pytest.raises(BudgetExceededError, match=r"whole budget of 1 is spent"):
        book.charge("adult", laplace_statement(Fraction(1, 10**30)), purpose="a hair more")
    assert len(book.history("adult")) == 10


def test_a_charge_beyond_the_budget_is_refused_whole_with_what_is_left_and_what_fits(charged: Ledger) -> None:
    with pytest.raises(BudgetExceededError) as refusal:
        charged.charge("adult", laplace_statement("3/4"), purpose="too much")
    assert str(refusal.value) == (
        "the charge of epsilon 0.75 (3/4) to dataset 'adult' was refused and nothing charged: "
        "about 0.666667 (exactly 2/3) is left of 1; ask for epsilon '2/3' or less"
    )
    assert len(charged.history()) == 1
    assert charged.charge("adult", laplace_statement("2/3"), purpose="what fits").epsilon == Fraction(2, 3)


def test_what_fits_stays_short_and_true_after_charges_with_long_fractions(book: Ledger) -> None:
    book.create("adult", 1)
    for denominator in (10**300 + 7, 10**301 + 9, 10**302 + 11):
        book.charge("adult", laplace_statement(Fraction(10**299, denominator)), purpose="long")
    with pytest.raises(BudgetExceededError) as refusal:
        book.charge("adult", laplace_statement(1), purpose="too much")
    assert len(str(refusal.value)) < 300
    (fits,) = re.findall(r"ask for epsilon '([^']+)' or less", str(refusal.value))
    assert Fraction("0.88") < Fraction(fits) <= book.budget("adult").left
    book.charge("adult", laplace_statement(fits), purpose="what fits")


def test_datasets_have_budgets_of_their_own(book: Ledger) -> None:
    book.create("b", 1)
    book.create("a", 2)
    book.charge("b", laplace_statement(1), purpose="all of b")
    assert [(account.name, account.budget.left) for account in book.datasets()] == [("a", 2), ("b", 0)]


def test_history_tells_what_when_and_for_whom_with_the_statement(charged: Ledger) -> None:
    charged.charge("adult", laplace_statement("1/7"), purpose="second\nline")
    first, second = charged.history("adult")
    assert (first.id, first.dataset, first.epsilon, first.purpose) == (1, "adult", Fraction(1, 3), "first")
    assert (first.analyst, second.analyst, second.purpose) == ("Ada", None, "second\nline")
    assert first.statement == laplace_statement("1/3").charged("the budget of 'adult' as charge 1")
    assert first.at.endswith("Z")
    assert abs(datetime.now(UTC) - datetime.fromisoformat(first.at)) < timedelta(minutes=1)


def test_history_without_a_dataset_tells_of_all_in_the_order_of_charging(book: Ledger) -> None:
    for name in ("a", "b"):
        book.create(name, 1)
    for name in ("b", "a", "b"):
        book.charge(name, laplace_statement("1/4"), purpose="turn")
    assert [(charge.id, charge.dataset) for charge in book.history()] == [(1, "b"), (2, "a"), (3, "b")]
    assert [charge.id for charge in book.history("b")] == [1, 3]


def test_the_first_charge_fixes_neighbours_and_unit(charged: Ledger) -> None:
    (account,) = charged.datasets()
    assert (account.neighbours, account.unit) == (Neighbours.ADD_REMOVE, "row")
    with pytest.raises(LedgerError, match=r"'add-remove'.*'replace' do not add up.*nothing was charged"):
        charged.charge("adult", laplace_statement("1/10", neighbours="replace"), purpose="other neighbours")
    with pytest.raises(LedgerError, match=r"unit 'row'.*'person:id' do not add up.*nothing was charged"):
        charged.charge("adult", laplace_statement("1/10", unit=PrivacyUnit.person("id", 2)), purpose="other unit")
    assert len(charged.history()) == 1


def test_terms_stated_at_creation_bind_the_first_charge(book: Ledger) -> None:
    book.create("visits", 1, neighbours="replace", person="id")
    with pytest.raises(LedgerError, match="'replace'"):
        book.charge("visits", laplace_statement("1/2", unit=PrivacyUnit.person("id", 1)), purpose="neighbours")
    with pytest.raises(LedgerError, match="'person:id'"):
        book.charge("visits", laplace_statement("1/2", neighbours="replace"), purpose="unit")
    assert book.history() == []


def test_charges_for_one_person_may_keep_different_numbers_of_rows(book: Ledger) -> None:
    book.create("visits", 1)
    for max_rows in (1, 5):
        unit = PrivacyUnit.person("id", max_rows)
        book.charge("visits", laplace_statement("1/4", unit=unit), purpose=f"{max_rows} rows")
    assert book.budget("visits").spent == Fraction(1, 2)


def nested(depth: int) -> PrivacyStatement:
    event = LaplaceEvent(1, Fraction(10))
    for _ in range(depth):
        event = SequentialEvent((event,))
    return dataclasses.replace(laplace_statement(1), event=event)


@pytest.mark.parametrize(
    "make",
    [
        lambda: None,
        lambda: "epsilon 1",
        lambda: dataclasses.replace(laplace_statement(1), epsilon=1.5),
        lambda: dataclasses.replace(laplace_statement(1), epsilon=float("inf")),
        lambda: dataclasses.replace(laplace_statement(1), epsilon=Fraction(0), event=SequentialEvent(())),
        lambda: dataclasses.replace(laplace_statement(1), epsilon=Fraction(10**9 + 1)),
        lambda: dataclasses.replace(laplace_statement(1), epsilon=Fraction(3**800 + 1, 3**800)),
        lambda: dataclasses.replace(laplace_statement(1), event=LaplaceEvent(1, Fraction(10**5000))),
        lambda: laplace_statement(1, unit=PrivacyUnit.person("\ud800", 1)),
        lambda: nested(100),
    ],
    ids=range(10),
)
def test_a_statement_that_cannot_be_kept_is_refused_and_charges_nothing(
    book: Ledger, make: Callable[[], object]
) -> None:
    book.create("adult", 10**9)
    with pytest.raises((LedgerError, PrivacyError)):
        book.charge("adult", make(), purpose="none")
    assert book.history() == []


@pytest.mark.parametrize("text", ["", "  ", "\0", "\ud800", 3, "x" * 10_001])
def test_a_purpose_or_analyst_that_says_nothing_is_refused(charged: Ledger, text: object) -> None:
    with pytest.raises(LedgerError, match="purpose"):
        charged.charge("adult", laplace_statement("1/9"), purpose=text)
    with pytest.raises(LedgerError, match="analyst"):
        charged.charge("adult", laplace_statement("1/9"), purpose="fine", analyst=text)
    assert len(charged.history()) == 1


def test_an_unknown_dataset_is_refused_with_where_to_look(charged: Ledger) -> None:
    uses: list[Callable[[], object]] = [
        lambda: charged.budget("adults"),
        lambda: charged.history("adults"),
        lambda: charged.charge("adults", laplace_statement(1), purpose="none"),
    ]
    for use in uses:
        with pytest.raises(LedgerError, match=r"no dataset 'adults'; did you mean 'adult'\? see 'veilcube ledger"):
            use()


def test_threads_that_race_for_the_last_of_a_budget_find_one_winner(book: Ledger) -> None:
    book.create("adult", 1)

    def race(number: int) -> bool:
        try:
            return bool(book.charge("adult", laplace_statement("2/3"), purpose=f"thread {number}"))
        except BudgetExceededError:
            return False

    with ThreadPoolExecutor(8) as pool:
        assert sorted(pool.map(race, range(8))) == [False] * 7 + [True]
    assert book.budget("adult").spent == Fraction(2, 3)


# Receipts


def test_a_receipt_names_its_charge_and_carries_the_charged_statement(charged: Ledger) -> None:
    receipt = charged.charge("adult", laplace_statement("1/9"), purpose="answer")
    assert (receipt.charge_id, receipt.dataset, receipt.epsilon) == (2, "adult", Fraction(1, 9))
    assert receipt.statement == charged.history()[1].statement
    assert receipt.statement.words.endswith("Charged to the budget of 'adult' as charge 2.")


def test_a_receipt_pays_once(charged: Ledger) -> None:
    receipt = charged.charge("adult", laplace_statement("1/9"), purpose="answer")
    assert receipt.redeem() is receipt.statement
    with pytest.raises(LedgerError, match="used up"):
        receipt.redeem()


def test_a_receipt_without_a_ledger_says_so_and_pays_once() -> None:
    receipt = Receipt.uncharged(laplace_statement(1).charged("somebody else"))
    assert (receipt.charge_id, receipt.dataset, receipt.epsilon) == (None, None, 1)
    assert receipt.redeem().words.endswith("Not charged to any ledger.")
    with pytest.raises(LedgerError, match="used up"):
        receipt.redeem()


def test_of_many_threads_one_redeems_a_receipt() -> None:
    start = threading.Barrier(8)
    for _ in range(50):
        receipt = Receipt.uncharged(laplace_statement(1))

        def redeem(_: int, receipt: Receipt = receipt) -> int:
            start.wait()
            try:
                receipt.redeem()
            except LedgerError:
                return 0
            return 1

        with ThreadPoolExecutor(8) as pool:
            assert sum(pool.map(redeem, range(8))) == 1


@pytest.mark.parametrize("duplicate", [copy.copy, copy.deepcopy, pickle.dumps])
def test_a_receipt_cannot_be_duplicated(duplicate: Callable[[Receipt], object]) -> None:
    with pytest.raises(LedgerError, match="cannot be copied"):
        duplicate(Receipt.uncharged(laplace_statement(1)))


def test_a_receipt_cannot_be_made_or_changed_by_hand() -> None:
    receipt = Receipt.uncharged(laplace_statement(1))
    with pytest.raises(LedgerError, match="only a ledger"):
        Receipt(1, "adult", laplace_statement(1), Currency.EPSILON, object())
    with pytest.raises((LedgerError, ValueError)):
        dataclasses.replace(receipt, charge_id=1)
    with pytest.raises(dataclasses.FrozenInstanceError):
        receipt.charge_id = 1


def test_a_receipt_counts_only_in_the_process_that_got_it() -> None:
    receipt = Receipt.uncharged(laplace_statement(1))
    child = os.fork()
    if child == 0:
        try:
            receipt.redeem()
        except LedgerError as refusal:
            os._exit(7 if "process" in str(refusal) else 1)
        os._exit(0)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 7
    receipt.redeem()


# Where a ledger is


def test_urls_and_paths_name_the_same_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    file = tmp_path / "budget.db"
    names = ["sqlite:///budget.db", f"sqlite:///{file}", "budget.db", str(file), Path("budget.db"), file]
    assert {Ledger(name).path for name in names} == {file}


@pytest.mark.parametrize(
    "url",
    [
        "",
        "sqlite://",
        "sqlite:///",
        "sqlite:///:memory:",
        ":memory:",
        "sqlite://host/x.db",
        "sqlite:x.db",
        "sqlite:///x.db?mode=ro",
        "mysql://host/db",
        "a\0b",
        None,
        5,
        b"x.db",
    ],
)
def test_what_names_no_file_is_refused(url: object) -> None:
    with pytest.raises(LedgerError, match="a ledger is a file"):
        Ledger(url)


@pytest.mark.parametrize("timeout", [-1, float("nan"), float("inf"), "10", None, True])
def test_a_timeout_must_be_a_number_of_seconds(tmp_path: Path, timeout: object) -> None:
    with pytest.raises(LedgerError, match="timeout"):
        Ledger(tmp_path / "budget.db", timeout=timeout)


@pytest.mark.parametrize("name", ["50% ?#&=.db", "mode=memory", "é 日本.db", "budget"])
def test_any_file_name_will_do(tmp_path: Path, name: str) -> None:
    Ledger(tmp_path / name).create("adult", 1)
    assert {file.name for file in tmp_path.iterdir()} == {name, f"{name}.begun", f"{name}.key"}
    assert Ledger(f"sqlite:///{tmp_path}/x.db").path.name == "x.db"


def test_a_ledger_follows_a_link_to_its_file(tmp_path: Path, charged: Ledger) -> None:
    link = tmp_path / "link.db"
    link.symlink_to(charged.path)
    Ledger(link).charge("adult", laplace_statement("1/9"), purpose="through the link")
    assert len(charged.history()) == 2


def test_the_path_stays_when_the_working_folder_changes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    book = Ledger("budget.db")
    book.create("adult", 1)
    monkeypatch.chdir("/")
    assert book.budget("adult").left == 1


def test_a_ledger_can_be_pickled_because_it_holds_no_connection(charged: Ledger) -> None:
    assert pickle.loads(pickle.dumps(charged)).budget("adult") == charged.budget("adult")


# Files gone wrong


def every_use(book: Ledger) -> Iterator[Callable[[], object]]:
    yield lambda: book.charge("adult", laplace_statement("1/9"), purpose="try")
    yield lambda: book.budget("adult")
    yield book.history
    yield book.datasets
    yield lambda: book.create("adult", 1)
    yield lambda: book.ensure("adult", 1)


def test_a_missing_ledger_is_not_made_by_looking_and_the_error_says_how_to_make_it(book: Ledger) -> None:
    for use in list(every_use(book))[:4]:
        with pytest.raises(LedgerError, match=r"there is no ledger at .*'veilcube ledger create'"):
            use()
    assert not book.path.exists()


def test_an_empty_file_is_no_ledger_until_one_is_created_in_it(book: Ledger) -> None:
    book.path.touch()
    with pytest.raises(LedgerError, match="there is no ledger"):
        book.history()
    book.create("adult", 1)
    assert book.budget("adult").left == 1


def test_a_missing_folder_is_named(tmp_path: Path) -> None:
    with pytest.raises(LedgerError, match=r"folder .*nowhere.* does not exist; make it first"):
        Ledger(tmp_path / "nowhere" / "budget.db").create("adult", 1)


def test_a_name_too_long_for_the_disk_is_refused(tmp_path: Path) -> None:
    with pytest.raises(LedgerError, match="cannot be opened"):
        Ledger(tmp_path / ("x" * 300)).create("adult", 1)


def make_folder(path: Path) -> None:
    path.mkdir()


def make_text(path: Path) -> None:
    path.write_text("name,age\nAda,36\n" * 100)


def make_pipe(path: Path) -> None:
    os.mkfifo(path)


def make_other_database(path: Path) -> None:
    with closing(sqlite3.connect(path)) as connection:
        connection.execute("CREATE TABLE charges (id INTEGER)")


def make_other_wal_database(path: Path) -> None:
    with closing(sqlite3.connect(path)) as connection:
        connection.execute("PRAGMA journal_mode=WAL")
        connection.execute("CREATE TABLE charges (id INTEGER)")


@pytest.mark.parametrize("make", [make_folder, make_text, make_pipe, make_other_database, make_other_wal_database])
def test_what_is_not_a_ledger_is_refused_and_left_alone(book: Ledger, make: Callable[[Path], None]) -> None:
    make(book.path)
    before = book.path.read_bytes() if book.path.is_file() else None
    for use in every_use(book):
        with pytest.raises(LedgerError, match="not a veilcube ledger and was left alone"):
            use()
    assert before is None or book.path.read_bytes() == before
    assert [file.name for file in book.path.parent.iterdir()] == ["budget.db"]


def test_a_ledger_of_a_newer_version_is_refused_and_left_alone(charged: Ledger) -> None:
    change(charged, f"PRAGMA user_version={VERSION + 1}")
    before = charged.path.read_bytes()
    for use in every_use(charged):
        with pytest.raises(LedgerError, match=rf"version {VERSION + 1} .*up to {VERSION}; upgrade veilcube"):
            use()
    assert charged.path.read_bytes() == before


def test_a_ledger_with_another_journal_is_refused_with_how_to_set_it_back(charged: Ledger) -> None:
    change(charged, "PRAGMA journal_mode=WAL")
    with pytest.raises(LedgerError, match="PRAGMA journal_mode=DELETE"):
        charged.charge("adult", laplace_statement("1/9"), purpose="try")
    change(charged, "PRAGMA journal_mode=DELETE")
    assert len(charged.history()) == 1


def test_a_locked_ledger_is_refused_after_the_timeout_and_nothing_is_charged(charged: Ledger) -> None:
    impatient = Ledger(charged.path, timeout=0.05)
    with closing(sqlite3.connect(charged.path, isolation_level=None)) as other:
        other.execute("BEGIN EXCLUSIVE")
        for use in every_use(impatient):
            with pytest.raises(LedgerError, match=r"held by another program, so nothing was charged; .*try again"):
                use()
    assert len(impatient.history()) == 1


def test_a_reader_that_will_not_let_go_delays_the_commit_until_the_charge_is_refused(charged: Ledger) -> None:
    impatient = Ledger(charged.path, timeout=0.05)
    with closing(sqlite3.connect(charged.path, isolation_level=None)) as reader:
        reader.execute("BEGIN")
        reader.execute("SELECT * FROM charges").fetchone()
        with pytest.raises(LedgerError, match="held by another program"):
            impatient.charge("adult", laplace_statement("1/9"), purpose="try")
        reader.execute("COMMIT")
    assert len(impatient.history()) == 1


def test_a_truncated_ledger_is_refused(charged: Ledger) -> None:
    whole = charged.path.read_bytes()
    # SQLite reads zeros where the last page ends early, so the zeros at its end are no loss.
    content = len(whole.rstrip(b"\0"))
    for length in (1, 50, 99, 100, 512, 4096, len(whole) // 2, len(whole) - 4096, content - 1):
        charged.path.write_bytes(whole[:length])
        with pytest.raises(LedgerError):
            charged.charge("adult", laplace_statement("1/9"), purpose="try")


def test_damage_anywhere_ends_in_a_ledger_error_or_does_no_harm(charged: Ledger) -> None:
    whole = charged.path.read_bytes()
    chance = random.Random(20)
    refused = 0
    for _ in range(200):
        damaged = bytearray(whole)
        for _ in range(8):
            damaged[chance.randrange(len(whole))] ^= chance.randrange(1, 256)
        charged.path.write_bytes(damaged)
        try:
            charged.history()
            charged.charge("adult", laplace_statement("1/9"), purpose="try")
        except VeilcubeError:
            refused += 1
    assert refused > 10


def without_guards(charged: Ledger, *statements: str) -> None:
    guards = [f"DROP TRIGGER charges_not_{done}" for done in ("updated", "deleted", "replaced")]
    change(charged, "PRAGMA ignore_check_constraints=ON", *guards, *statements)


@pytest.mark.parametrize(
    "tampering",
    [
        "UPDATE charges SET amount = '1/300'",
        "UPDATE charges SET statement = '{}'",
        "UPDATE charges SET statement = 'no json'",
        "UPDATE charges SET statement = x'ff'",
        "UPDATE charges SET purpose = CAST(x'ff' AS TEXT)",
        "UPDATE charges SET purpose = x'ff'",
        "UPDATE charges SET neighbours = 'replace'",
        "UPDATE charges SET unit = 'person:id'",
        "DELETE FROM charges WHERE id = 1",
    ],
)
def test_rows_that_no_ledger_writes_are_reported_as_damage(charged: Ledger, tampering: str) -> None:
    charged.charge("adult", laplace_statement("1/9"), purpose="second")
    without_guards(charged, tampering)
    with pytest.raises(LedgerError, match="damaged; restore a backup"):
        charged.history()


@pytest.mark.parametrize(
    "tampering",
    [
        "UPDATE charges SET amount = 'x' WHERE id = 2",
        "UPDATE charges SET amount = '1/0' WHERE id = 2",
        "UPDATE charges SET amount = x'31' WHERE id = 2",
        "UPDATE charges SET neighbours = 'replace' WHERE id = 2",
        "UPDATE charges SET neighbours = 'next-door'",
        "UPDATE charges SET unit = 'person:id' WHERE id = 2",
        "DELETE FROM charges WHERE id = 1",
    ],
)
def test_no_charge_is_added_to_rows_that_no_ledger_writes(charged: Ledger, tampering: str) -> None:
    charged.charge("adult", laplace_statement("1/9"), purpose="second")
    without_guards(charged, tampering)
    with pytest.raises(LedgerError, match="damaged; restore a backup"):
        charged.charge("adult", laplace_statement("1/9"), purpose="third")


@pytest.mark.parametrize(
    "statement",
    [
        "UPDATE charges SET amount = '1/9'",
        "DELETE FROM charges",
        "INSERT OR REPLACE INTO charges SELECT * FROM charges",
        "UPDATE accounts SET amount = '9'",
        "DELETE FROM accounts",
        "INSERT OR REPLACE INTO accounts SELECT dataset, '9', neighbours, unit, created, currency FROM accounts",
    ],
)
def test_rows_are_added_and_never_changed(charged: Ledger, statement: str) -> None:
    with pytest.raises(sqlite3.IntegrityError, match="added and never changed"):
        change(charged, statement)


@pytest.mark.parametrize(
    ("column", "value"),
    [("id", value) for value in ("0", "-1")]
    + [("amount", value) for value in ("'0'", "'-1'", "'0.5'", "'1/0'", "'1/'", "'/2'", "'1/2/3'", "''", "1e0", "NULL")]
    + [("neighbours", "'next-door'"), ("neighbours", "NULL"), ("unit", "'person:'"), ("unit", "NULL")]
    + [("statement", "'words'"), ("purpose", "''"), ("analyst", "''"), ("at", "'yesterday'")]
    + [("dataset", "'unknown'")],
)
def test_the_file_itself_refuses_a_charge_that_makes_no_sense(charged: Ledger, column: str, value: str) -> None:
    row = {name: name for name in ("dataset", "amount", "neighbours", "unit", "statement", "purpose", "analyst", "at")}
    row = {"id": "2"} | row | {column: value}
    insert = f"INSERT INTO charges ({', '.join(row)}) SELECT {', '.join(row.values())} FROM charges"
    with pytest.raises(sqlite3.IntegrityError):
        change(charged, "PRAGMA foreign_keys=ON", insert)
    change(charged, "PRAGMA foreign_keys=ON", insert.replace(value, column if column != "id" else "2", 1))


# Disks and users


def attempts_of_nobody(path: Path) -> list[str]:
    """Charge and read as a user who is not root, in a child, and return what came of it."""
    reading, writing = os.pipe()
    child = os.fork()
    if child == 0:
        try:
            if os.getuid() == 0:
                os.setgroups([])
                os.setgid(65534)
                os.setuid(65534)
            book = Ledger(path)
            for use in (lambda: book.charge("adult", laplace_statement("1/9"), purpose="try"), book.history):
                try:
                    outcome = repr(use())
                except LedgerError as refusal:
                    outcome = str(refusal)
                os.write(writing, f"{outcome}\n".encode())
        finally:
            os._exit(0)
    os.close(writing)
    os.waitpid(child, 0)
    with os.fdopen(reading) as outcomes:
        return outcomes.read().splitlines()


@pytest.mark.parametrize(
    ("folder_mode", "file_mode", "charging", "reading"),
    [
        (0o755, 0o444, "is read-only, so nothing was charged; let this user write", "[Charge("),
        (0o555, 0o666, "so nothing was charged; let this user", "[Charge("),
        (0o755, 0o000, "cannot be opened, so nothing was charged; let this user", "cannot be opened"),
    ],
    ids=["read-only file", "read-only folder", "unreadable file"],
)
def test_a_user_without_permission_is_told_and_nothing_is_charged(
    folder_mode: int, file_mode: int, charging: str, reading: str
) -> None:
    # pytest's own folders are closed to other users, and permissions mean nothing to root: hence a folder of our own
    # and, for root, a child that becomes nobody.
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        book = Ledger(folder / "budget.db")
        book.create("adult", 1)
        book.charge("adult", laplace_statement("1/3"), purpose="first")
        book.path.chmod(file_mode)
        folder.chmod(folder_mode)
        first, second = attempts_of_nobody(book.path)
        folder.chmod(0o755)
        book.path.chmod(0o644)
        assert charging in first
        assert reading in second
        assert len(book.history()) == 1


FILL_THE_DISK = """
import os, subprocess, sys
from pathlib import Path
from support.statements import laplace_statement
from veilcube.curator.ledger import Ledger
from veilcube.errors import LedgerError
folder = Path(sys.argv[1])
if subprocess.run(["mount", "-t", "tmpfs", "-o", "size=256k", "tmpfs", folder]).returncode:
    sys.exit(77)
def fill():
    with open(folder / "filler", "wb", buffering=0) as filler:
        try:
            while True:
                filler.write(bytes(4096))
        except OSError:
            pass
def attempt(use):
    try:
        use()
    except LedgerError as refusal:
        print(refusal)
book = Ledger(folder / "budget.db")
fill()
attempt(lambda: book.create("adult", 1))
(folder / "filler").unlink()
book.create("adult", 1)
fill()
attempt(lambda: book.charge("adult", laplace_statement("1/3"), purpose="full"))
print(len(book.history()))
(folder / "filler").unlink()
print(book.charge("adult", laplace_statement("1/3"), purpose="room again").charge_id)
subprocess.run(["mount", "-o", "remount,ro", folder], check=True)
attempt(lambda: book.charge("adult", laplace_statement("1/3"), purpose="read-only disk"))
print(len(book.history()))
"""


def test_a_full_disk_and_a_read_only_disk_refuse_the_charge_and_lose_nothing(tmp_path: Path) -> None:
    if shutil.which("unshare") is None:
        pytest.skip("unshare is not on this machine, so no small disk can be made")
    command = ["unshare", "--map-root-user", "--mount", sys.executable, "-c", FILL_THE_DISK, str(tmp_path)]
    environment = os.environ | {"PYTHONPATH": os.pathsep.join(sys.path)}
    done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=800, env=environment)
    if done.returncode == 77 or "unshare failed" in done.stderr:
        pytest.skip("this machine does not let tests mount a small disk")
    assert done.returncode == 0, done.stderr
    creating, charging, none_yet, number, read_only, one = done.stdout.splitlines()
    assert "is full, so nothing was charged; free some space" in creating
    assert "is full, so nothing was charged; free some space" in charging
    assert "is read-only, so nothing was charged" in read_only or "cannot be opened" in read_only
    assert (none_yet, number, one) == ("0", "1", "1")
