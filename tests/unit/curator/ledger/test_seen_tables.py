"""A changed table under the same dataset is noticed, by the curator alone, and whatever happens to the notes."""

import json
import stat
import threading
import warnings
from pathlib import Path

import numpy as np
import pytest

import veilcube as vc
from support.command_line import SCHEMA as TOML, caller
from veilcube.curator import Cube, RowList, SeenTables, Sight, Tally
from veilcube.errors import BudgetExceededError, LedgerError
from veilcube.privacy import PrivacyUnit

SCHEMA = vc.Schema([vc.Ordinal("age", 1, 6), vc.Nominal("sex", ["Female", "Male"])])
COUNTS = np.arange(12).reshape(6, 2)
MORE = COUNTS + (np.arange(12).reshape(6, 2) == 3)
KEY, ROW = bytes(range(32)), PrivacyUnit.row()


@pytest.fixture
def book(tmp_path: Path) -> vc.Ledger:
    ledger = vc.Ledger(tmp_path / "budget.db")
    ledger.create("people", 10)
    return ledger


def notices(book: vc.Ledger, counts: object, **more: object) -> list[str]:
    with warnings.catch_warnings(record=True) as heard:
        warnings.simplefilter("always")
        vc.release(vc.Cube(more.pop("schema", SCHEMA), counts), ledger=book, dataset="people", **more)
    return [str(one.message) for one in heard]


def test_the_same_table_is_released_twice_without_a_word_and_another_one_with_a_warning(book: vc.Ledger) -> None:
    assert notices(book, COUNTS) == notices(book, COUNTS) == []
    (notice,) = notices(book, MORE)
    assert "not the one that dataset 'people' was charged for" in notice
    assert "Only you see this line" in notice
    assert notices(book, MORE) == []
    assert len(notices(book, COUNTS)) == 1


def test_another_schema_is_another_count_and_not_compared(book: vc.Ledger) -> None:
    other = vc.Schema([vc.Ordinal("age", 1, 6), vc.Nominal("sex", ["Female", "Male", "Other"])])
    assert notices(book, COUNTS) == notices(book, np.ones((6, 3), int), schema=other) == []
    assert len(notices(book, MORE)) == 1


def test_what_is_written_is_no_count_and_only_its_owner_may_read_it(book: vc.Ledger) -> None:
    notices(book, COUNTS)
    file = book.path.with_name("budget.db.seen")
    assert stat.S_IMODE(file.stat().st_mode) == 0o600
    key, line = file.read_text().splitlines()
    assert set(json.loads(line)) == {"dataset", "basis", "digest", "at"}
    assert len(bytes.fromhex(key)) == 32
    assert "digest" not in repr(SeenTables(book.path))


def test_neither_the_release_nor_the_ledger_holds_the_key_or_a_digest(book: vc.Ledger, tmp_path: Path) -> None:
    made = vc.release(vc.Cube(SCHEMA, COUNTS), ledger=book, dataset="people")
    made.save(tmp_path / "people.veil")
    key, line = book.path.with_name("budget.db.seen").read_text().splitlines()
    secrets = [key, json.loads(line)["digest"], json.loads(line)["basis"]]
    for content in (book.path.read_bytes(), (tmp_path / "people.veil").read_bytes(), repr(made.record).encode()):
        assert not any(form in content for text in secrets for form in (text.encode(), bytes.fromhex(text)))


def test_the_ledger_is_the_same_whether_the_table_changed_or_not(tmp_path: Path) -> None:
    told = []
    for name, counts in (("same", COUNTS), ("other", MORE)):
        book = vc.Ledger(tmp_path / f"{name}.db")
        book.create("people", 10)
        for each in (COUNTS, counts):
            notices(book, each, strategy="identity")
        told.append([(one.purpose, one.details, one.amount, one.statement) for one in book.history()])
    assert told[0] == told[1]


def test_a_refused_charge_leaves_no_line(book: vc.Ledger) -> None:
    notices(book, COUNTS)
    with pytest.raises(BudgetExceededError):
        vc.release(vc.Cube(SCHEMA, COUNTS), epsilon=100, ledger=book, dataset="people")
    assert len(book.path.with_name("budget.db.seen").read_text().splitlines()) == 2


def test_a_ledger_that_is_not_there_gets_no_file_beside_it(tmp_path: Path) -> None:
    with pytest.raises(LedgerError, match="there is no ledger"):
        vc.release(vc.Cube(SCHEMA, COUNTS), ledger=vc.Ledger(tmp_path / "none.db"), dataset="people")
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("content", [b"", b"short\n", b"\xff\xfe\n", b"00" * 31 + b"\n", b"zz" * 32 + b"\n"])
def test_a_file_without_a_key_is_told_and_the_release_is_made(book: vc.Ledger, content: bytes) -> None:
    book.path.with_name("budget.db.seen").write_bytes(content)
    (notice,) = notices(book, COUNTS)
    assert "cannot be used" in notice
    assert len(book.history()) == 1


def test_a_line_that_a_kill_cut_short_is_passed_over_and_does_not_harm_the_next(book: vc.Ledger) -> None:
    notices(book, COUNTS)
    file = book.path.with_name("budget.db.seen")
    whole = file.read_bytes()
    for cut in range(len(whole) - 1, len(whole.splitlines()[0]) + 1, -17):
        file.write_bytes(whole[:cut])
        assert notices(book, COUNTS, epsilon="1/100") == []
        assert len(notices(book, MORE, epsilon="1/100")) == 1


def test_programs_that_begin_at_once_agree_on_one_key(tmp_path: Path) -> None:
    for number in range(20):
        found: list[bytes | None] = []
        seen = SeenTables(tmp_path / f"{number}.db")
        threads = [
            threading.Thread(target=lambda seen=seen, found=found: found.append(seen.key(begin=True))) for _ in range(4)
        ]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert len(set(found)) == 1
        assert found[0] is not None
    assert not list(tmp_path.glob("*.tmp"))


def test_digests_differ_with_the_counts_the_unit_and_the_key_alone() -> None:
    cube = Cube(SCHEMA, COUNTS)
    assert cube.digest(KEY) == Cube(SCHEMA, COUNTS.astype(np.int32)).digest(KEY)
    assert cube.digest(KEY)[1] != Cube(SCHEMA, MORE).digest(KEY)[1]
    assert cube.digest(KEY)[1] != cube.digest(KEY[::-1])[1]
    assert cube.digest(KEY)[0] != Cube(SCHEMA, COUNTS, PrivacyUnit.person("id", 2)).digest(KEY)[0]
    tally = Tally(SCHEMA, [(0,)], np.arange(6), ROW)
    assert tally.digest(KEY)[0] not in {cube.digest(KEY)[0], Tally(SCHEMA, [(1,)], np.arange(2), ROW).digest(KEY)[0]}


def test_rows_in_another_order_are_the_same_table_and_one_value_exchanged_is_another() -> None:
    generator = np.random.default_rng(3)
    rows = [generator.integers(0, 6, 200_000).astype(np.uint8), generator.integers(0, 2, 200_000).astype(np.uint8)]
    order = generator.permutation(200_000)
    digest = RowList(SCHEMA, [column.copy() for column in rows], ROW).digest(KEY)
    assert RowList(SCHEMA, [column[order] for column in rows], ROW).digest(KEY) == digest
    # The sums of both columns stay as they were: only which values stand in one row changes.
    first, second = (int(np.flatnonzero((rows[0] == age) & (rows[1] == age))[0]) for age in (0, 1))
    swapped = [column.copy() for column in rows]
    swapped[1][[first, second]] = swapped[1][[second, first]]
    assert RowList(SCHEMA, swapped, ROW).digest(KEY)[1] != digest[1]
    assert RowList(SCHEMA, [column[:-1] for column in rows], ROW).digest(KEY)[1] != digest[1]


def test_the_latest_table_of_many_counts(tmp_path: Path) -> None:
    seen = SeenTables(tmp_path / "budget.db")
    assert seen.key(begin=True) is not None
    for number in range(200):
        seen.note(Sight("people", "basis", str(number % 2), f"moment {number}"))
    assert seen.change(Sight("people", "basis", "1", "now")) is None
    assert "moment 199" in str(seen.change(Sight("people", "basis", "0", "now")))
    assert seen.change(Sight("others", "basis", "0", "now")) is None


# Details of charges


def test_a_release_tells_its_ledger_where_it_goes_how_it_was_made_and_what_to_remember(book: vc.Ledger) -> None:
    notices(book, COUNTS, strategy="identity", note="January", output=Path("jan.veil"))
    notices(book, COUNTS, strategy="identity")
    told, silent = (charge.details for charge in book.history())
    assert (told.output, told.schema, told.note) == ("jan.veil", SCHEMA.fingerprint(), "January")
    assert told.strategy == vc.Identity().to_dict() == silent.strategy
    assert (silent.output, silent.note) == (None, None)


def test_a_question_to_a_protected_table_tells_its_schema(book: vc.Ledger) -> None:
    vc.protect(vc.Cube(SCHEMA, COUNTS), ledger=book, dataset="people").noisy_count(epsilon=1)
    assert book.history()[0].details.schema == SCHEMA.fingerprint()


@pytest.mark.parametrize("note", ["", 3, "half \ud800", "x\0y"])
def test_a_note_that_cannot_be_kept_is_refused_before_anything_is_charged(book: vc.Ledger, note: object) -> None:
    with pytest.raises(LedgerError, match="note"):
        vc.release(vc.Cube(SCHEMA, COUNTS), ledger=book, dataset="people", note=note)
    assert book.history() == []


def test_a_note_without_a_ledger_is_refused() -> None:
    with pytest.raises(LedgerError, match="a note is kept in the ledger"):
        vc.release(vc.Cube(SCHEMA, COUNTS), note="January")


# On the command line


def test_the_command_line_shows_notes_files_and_shares(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    call = caller(capfd)
    (tmp_path / "people.csv").write_text("age,sex\n30,Male\n31,Female\n")
    (tmp_path / "more.csv").write_text("age,sex\n30,Male\n31,Female\n31,Male\n")
    (tmp_path / "people.toml").write_text(TOML)
    url = str(tmp_path / "budget.db")
    vc.Ledger(url).create("people", 1)

    def release(table: str, out: str, *more: str) -> str:
        words = ["release", str(tmp_path / table), "--schema", str(tmp_path / "people.toml"), "--epsilon", "0.25"]
        done = call(*words, "--out", str(tmp_path / out), "--ledger", url, "--dataset", "people", *more)
        assert done.code == 0
        assert "same people" not in done.out
        return done.err

    assert release("people.csv", "jan.veil", "--note", "January") == ""
    assert "not the one that dataset 'people' was charged for" in release("more.csv", "feb.veil")
    assert release("more.csv", "mar.veil", "--json") == ""
    history = call("ledger", "history", url).out
    assert "January" in history
    assert "feb.veil" in history
    first = json.loads(call("ledger", "history", url, "--json").out)["charges"][0]
    assert (first["note"], first["output"]) == ("January", str(tmp_path / "jan.veil"))
    assert first["strategy"]["name"]
    warned = call("ledger", "allow", url, "people", "Ada", "--epsilon", "0.5")
    assert (warned.code, "has only 0.25 (1/4) left" in warned.err) == (0, True)
    assert call("ledger", "allow", url, "people", "Bob", "--epsilon", "0.25").err == ""
    shown = call("ledger", "shares", url).out
    assert "have 0.75 left together, and its budget 0.25" in shown
    shares = json.loads(call("ledger", "shares", url, "people", "--json").out)["shares"]
    assert [(one["analyst"], one["left"], one["can_spend"]) for one in shares] == [
        ("Ada", "1/2", "1/4"),
        ("Bob", "1/4", "1/4"),
    ]
    assert call("ledger", "shares", url, "nobody").code == 8
