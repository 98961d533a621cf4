"""A ledger file in every state that it may be found in: used as it is, or refused, but not made anew unsaid."""

import os
import shutil
import sqlite3
import threading
import warnings
from collections.abc import Callable
from contextlib import closing
from pathlib import Path

import pytest

import veilcube as vc
from support.children import message_without_privileges
from support.command_line import caller, write_people, write_schema
from veilcube.errors import LedgerError, VeilcubeError

CUBE = vc.Cube(vc.Schema([vc.Ordinal("age", 0, 7)]), [5] * 8)
TOTAL, SPENT = 2, 1


@pytest.fixture
def path(tmp_path: Path) -> Path:
    """A ledger whose dataset has spent half of its budget."""
    ledger = vc.Ledger(tmp_path / "budget.db")
    ledger.create("people", TOTAL)
    vc.release(CUBE, epsilon=SPENT, strategy="identity", ledger=ledger, dataset="people")
    return ledger.path


def _delete(path: Path) -> None:
    path.unlink()


def _empty(path: Path) -> None:
    os.truncate(path, 0)


def _leave_a_byte(path: Path) -> None:
    os.truncate(path, 1)


def _leave_the_header(path: Path) -> None:
    os.truncate(path, 100)


def _leave_a_page(path: Path) -> None:
    os.truncate(path, 4096)


def _halve(path: Path) -> None:
    os.truncate(path, path.stat().st_size // 2)


def _write_text(path: Path) -> None:
    path.write_text("people 2.0\n", encoding="utf-8")


def _write_zeros(path: Path) -> None:
    path.write_bytes(bytes(path.stat().st_size))


def _write_other_database(path: Path) -> None:
    path.unlink()
    with closing(sqlite3.connect(path)) as connection:
        connection.execute("CREATE TABLE charges (id INTEGER)")


def _write_blank_database(path: Path) -> None:
    path.unlink()
    with closing(sqlite3.connect(path)) as connection:
        connection.execute("CREATE TABLE t (id INTEGER)")
        connection.execute("DROP TABLE t")


def _make_folder(path: Path) -> None:
    path.unlink()
    path.mkdir()


def _drop_the_charges(path: Path) -> None:
    with closing(sqlite3.connect(path)) as connection:
        connection.execute("DROP TABLE charges")


def _turn_to_wal(path: Path) -> None:
    with closing(sqlite3.connect(path)) as connection:
        connection.execute("PRAGMA journal_mode=WAL")
        connection.execute("PRAGMA user_version")


def _delete_but_for_a_journal(path: Path) -> None:
    path.with_name("budget.db.begun").unlink()
    path.rename(path.with_name("budget.db-journal"))


def _delete_but_for_a_wal(path: Path) -> None:
    path.with_name("budget.db.begun").unlink()
    path.rename(path.with_name("budget.db-wal"))


def _leave_journals_of_others(path: Path) -> None:
    path.with_name("budget.db-journal").write_bytes(b"not a journal at all")
    path.with_name("budget.db-wal").write_bytes(b"nor this")


def _point_nowhere(path: Path) -> None:
    path.unlink()
    path.symlink_to(path.with_name("gone.db"))
    path.with_name("gone.db.begun").touch()


def _delete_the_note(path: Path) -> None:
    path.with_name("budget.db.begun").unlink()


STATES: dict[str, Callable[[Path], None]] = {
    function.__name__.strip("_").replace("_", " "): function
    for function in (
        _delete, _empty, _leave_a_byte, _leave_the_header, _leave_a_page, _halve, _write_text, _write_zeros,
        _write_other_database, _write_blank_database, _make_folder, _drop_the_charges, _turn_to_wal,
        _delete_but_for_a_journal, _delete_but_for_a_wal, _leave_journals_of_others, _point_nowhere, _delete_the_note,
    )
}  # fmt: skip
SOUND = {"delete the note"}

USES: dict[str, Callable[[Path], object]] = {
    "protect with a budget": lambda path: vc.protect(CUBE, ledger=vc.Ledger(path), dataset="people", epsilon=TOTAL),
    "protect by an address": lambda path: vc.protect(CUBE, ledger=f"sqlite:///{path}", dataset="people", epsilon=TOTAL),
    "protect": lambda path: vc.protect(CUBE, ledger=vc.Ledger(path), dataset="people"),
    "protect another dataset": lambda path: vc.protect(CUBE, ledger=vc.Ledger(path), dataset="others", epsilon=TOTAL),
    "release": lambda path: vc.release(CUBE, epsilon=SPENT, ledger=vc.Ledger(path), dataset="people"),
    "ensure": lambda path: vc.Ledger(path).ensure("people", TOTAL),
    "allow": lambda path: vc.Ledger(path).allow("people", "Ada", 1),
    "budget": lambda path: vc.Ledger(path).budget("people"),
    "history": lambda path: vc.Ledger(path).history("people"),
    "datasets": lambda path: vc.Ledger(path).datasets(),
}


@pytest.mark.parametrize("use", USES)
@pytest.mark.parametrize("state", STATES)
def test_a_lost_ledger_is_refused_and_not_made_anew(path: Path, state: str, use: str) -> None:
    STATES[state](path)
    before = path.read_bytes() if path.is_file() else None
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        try:
            USES[use](path)
        except VeilcubeError as refusal:
            message = str(refusal)
        else:
            message = ""
    if state in SOUND:
        assert message == ""
        assert vc.Ledger(path).budget("people").spent >= SPENT
        return
    if (state, use) == ("drop the charges", "protect another dataset"):
        with pytest.raises(LedgerError):  # another dataset is added, but this one has no budget to spend
            vc.Ledger(path).budget("people")
        return
    assert message
    assert "\n" not in message
    assert (path.read_bytes() if path.is_file() else None) == before


@pytest.mark.parametrize("state", ["delete", "empty", "point nowhere", "delete but for a journal"])
def test_create_makes_a_lost_ledger_anew_once_what_is_left_of_it_is_deleted(path: Path, state: str) -> None:
    STATES[state](path)
    for use in (lambda: vc.Ledger(path).budget("people"), lambda: vc.Ledger(path).create("people", TOTAL)):
        with pytest.raises(LedgerError, match=r"is lost: .* delete what is left of it \(.+\) and create a new one"):
            use()
    real = Path(os.path.realpath(path))
    for trace in real.parent.glob(f"{real.name}?*"):
        trace.unlink()
    vc.Ledger(path).create("people", TOTAL)
    assert vc.Ledger(path).budget("people").spent == 0


def test_a_file_that_is_merely_empty_is_made_a_ledger_by_create_alone(tmp_path: Path) -> None:
    path = tmp_path / "budget.db"
    path.touch()
    ledger = vc.Ledger(path, timeout=0.1)
    for use in (
        lambda: vc.protect(CUBE, ledger=ledger, dataset="people", epsilon=1),
        lambda: ledger.ensure("people", 1),
    ):
        with pytest.raises(LedgerError, match="is empty, so there is no ledger in it"):
            use()
    assert path.stat().st_size == 0
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert ledger.create("people", 1).left == 1


def test_a_protected_table_may_begin_a_ledger_where_none_ever_was_and_says_so(tmp_path: Path) -> None:
    path = tmp_path / "budget.db"
    with pytest.warns(UserWarning, match=r"there was no ledger at .*budget.db, so a new one was made"):
        vc.protect(CUBE, ledger=vc.Ledger(path), dataset="people", epsilon=TOTAL).noisy_count(epsilon=1)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        again = vc.protect(CUBE, ledger=vc.Ledger(path), dataset="people", epsilon=TOTAL)
    assert again.budget.spent == 1


def test_a_copy_put_back_is_used_with_what_it_knows(path: Path, tmp_path: Path) -> None:
    shutil.copy(path, tmp_path / "backup.db")
    path.unlink()
    shutil.copy(tmp_path / "backup.db", path)
    assert vc.protect(CUBE, ledger=vc.Ledger(path), dataset="people", epsilon=TOTAL).budget.spent == SPENT


def test_many_that_begin_one_ledger_at_once_all_find_it(tmp_path: Path) -> None:
    path, totals = tmp_path / "budget.db", []
    barrier = threading.Barrier(8)

    def begin() -> None:
        barrier.wait()
        totals.append(vc.Ledger(path, timeout=60).ensure("people", 3).total)

    threads = [threading.Thread(target=begin) for _ in range(8)]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    assert totals == [3] * 8


def test_a_ledger_that_may_not_be_written_is_refused(path: Path) -> None:
    path.chmod(0o444)
    path.parent.chmod(0o555)
    try:
        for use in ("protect with a budget", "release"):
            said = message_without_privileges(lambda use=use: USES[use](path))
            assert "budget.db" in said, use
    finally:
        path.parent.chmod(0o755)


def test_the_command_refuses_a_lost_ledger(path: Path, tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    call = caller(capfd)
    table, schema = write_people(tmp_path / "people.csv", rows=60), write_schema(tmp_path / "people.toml")
    words = ("release", str(table), "--schema", str(schema), "--epsilon", "1", "--out", str(tmp_path / "out.veil"))
    path.unlink()
    for command in (
        (*words, "--ledger", str(path), "--dataset", "people"),
        ("ledger", "show", str(path)),
        ("ledger", "history", str(path)),
        ("ledger", "allow", str(path), "people", "Ada", "--epsilon", "1"),
        ("history", "answer", str(path), "people", "TRUE"),
        ("synthesize", "--from", f"sqlite:///{path}", "--dataset", "people", "--out", str(tmp_path / "rows.parquet")),
        ("ledger", "create", str(path), "people", "--epsilon", "2"),
    ):
        done = call(*command)
        assert done.code in (8, 9), (command, done)
        assert done.err.count("\n") == 1, done
        assert not path.exists()
