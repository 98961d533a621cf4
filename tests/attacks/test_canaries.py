"""Values that nobody else has are planted in private tables, and searched for in all that leaves the curator's side.

That is: what commands print on a terminal, progress bars too; what they log and warn; errors, with tracebacks that show
local variables; every file that a command leaves behind, looked at inside; and the answers of a service beside whose
files a private table lies.
"""

import io
import logging
import os
import pty
import subprocess
import sys
import traceback
import warnings
import zipfile
from collections.abc import Callable, Iterator
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from rich.console import Console
from rich.traceback import Traceback

import veilcube as vc
from support.services import serving
from veilcube.curator.tables.engine import Engine
from veilcube.errors import VeilcubeError

# A text, an id, a note and a number; rows are so many that their number is one too.
TEXT, PERSON, NOTE, WAGE, ROWS = "Qvxz-Ωπ-canary", "id-kwyjibo-3141", "memo-xyzzy-2718", 8_675_309, 7_919
CANARIES = (TEXT, PERSON, NOTE, str(WAGE), f"{WAGE:,}")
SCHEMA = """
[[attribute]]
name = "wage"
kind = "ordinal"
edges = [0, 5000000, 10000000]

[[attribute]]
name = "job"
kind = "nominal"
values = ["Nurse", "Judge"]
"""
HEAD = "wage,job,person,note"


def canaries_in(text: str, *, rows: bool = False) -> list[str]:
    """Return the canaries in a text; the number of rows too where no noisy count could be equal to it."""
    return [one for one in (*CANARIES, *((str(ROWS), f"{ROWS:,}") if rows else ())) if one in text]


def contents_of(path: Path) -> Iterator[bytes]:
    """Yield a file, and what is inside if it is an archive."""
    yield path.read_bytes()
    if zipfile.is_zipfile(path):
        with zipfile.ZipFile(path) as archive:
            yield from (archive.read(name) for name in archive.namelist())


def canaries_on_disk(folder: Path) -> list[tuple[str, str]]:
    """Return the canaries in files, and in their names, but for the private tables themselves."""
    found = []
    for path in folder.rglob("*"):
        if path.name.startswith("private") or not path.is_file():
            continue
        inside = [str(path).encode(), *contents_of(path)]
        found += [(path.name, one) for one in CANARIES if any(one.encode() in content for content in inside)]
        wide = np.int64(WAGE).tobytes()
        found += [(path.name, "the number as eight bytes")] if any(wide in content for content in inside) else []
    return found


def write_tables(folder: Path) -> None:
    jobs = ["Nurse", "Judge"]
    rows = [f"{(row * 7919) % 9_999_999},{jobs[row % 2]},p{row // 3},plain" for row in range(ROWS - 1)]
    fits = [*rows, f"{WAGE},Nurse,{PERSON},{NOTE}"]
    (folder / "private.csv").write_text("\n".join([HEAD, *fits]) + "\n", encoding="utf-8")
    odd = [*rows, f"{WAGE},{TEXT},{PERSON},{NOTE}"]
    (folder / "private-odd.csv").write_text("\n".join([HEAD, *odd]) + "\n", encoding="utf-8")
    beyond = [*rows, f"-{WAGE},Nurse,{PERSON},{NOTE}"]
    (folder / "private-beyond.csv").write_text("\n".join([HEAD, *beyond]) + "\n", encoding="utf-8")
    (folder / "private-quote.csv").write_text("\n".join([HEAD, *fits, f'{WAGE},"{TEXT}'][:9999]), encoding="utf-8")
    longer = [*fits, f"{WAGE},Nurse,{PERSON},{NOTE},{TEXT}"]
    (folder / "private-longer.csv").write_text("\n".join([HEAD, *longer]), encoding="utf-8")
    (folder / "private-latin.csv").write_bytes("\n".join([HEAD, *fits, f"{WAGE},ü{NOTE},1,1"]).encode("latin-1"))
    (folder / "people.toml").write_text(SCHEMA, encoding="utf-8")


def on_a_terminal(folder: Path, *words: str) -> str:
    """Run a command on a terminal of its own, so that it shows progress, and return all that it wrote."""
    for name in ("temporary", "home"):
        (folder / name).mkdir(exist_ok=True)
    places = {"TMPDIR": str(folder / "temporary"), "HOME": str(folder / "home"), "VEILCUBE_CACHE": str(folder / "home")}
    ours, theirs = pty.openpty()
    command = [sys.executable, "-m", "veilcube.cli", *words]
    child = subprocess.Popen(command, cwd=folder, env=os.environ | places, stdin=theirs, stdout=theirs, stderr=theirs)
    os.close(theirs)
    told = b""
    while True:
        try:
            told += (part := os.read(ours, 65_536))
        except OSError:
            break
        if not part:
            break
    os.close(ours)
    child.wait()
    return told.decode(errors="replace")


RELEASE = ("--verbose", "release", "--schema", "people.toml", "--epsilon", "1/10")
REFUSED = {
    "a value that the schema does not list": (*RELEASE, "--out", "a.veil", "private-odd.csv"),
    "a number beyond the bounds": (*RELEASE, "--out", "a.veil", "private-beyond.csv"),
    "a quote that does not end": (*RELEASE, "--out", "a.veil", "private-quote.csv"),
    "a row that is too long": (*RELEASE, "--out", "a.veil", "private-longer.csv"),
    "bytes that are no UTF-8": (*RELEASE, "--out", "a.veil", "private-latin.csv"),
    "a column that is not there": (*RELEASE, "--person", "nobody", "--max-rows", "2", "--out", "a.veil", "private.csv"),
    "a folder that is not there": (*RELEASE, "--out", "no/such/a.veil", "private.csv"),
    "a budget that is too small": (
        *RELEASE, "--out", "a.veil", "--ledger", "sqlite:///b.db", "--dataset", "people", "private.csv"
    ),
    "a check against a schema": ("--verbose", "schema", "check", "people.toml", "--against", "private-odd.csv"),
}  # fmt: skip


@pytest.fixture(scope="module")
def workspace(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("canaries")
    write_tables(folder)
    vc.Ledger(folder / "b.db").create("people", "1/1000")
    return folder


@pytest.mark.parametrize("name", REFUSED)
def test_a_refusal_on_a_terminal_shows_no_value(name: str, workspace: Path) -> None:
    told = on_a_terminal(workspace, *REFUSED[name])
    assert told.strip()
    assert "Traceback" not in told
    assert canaries_in(told, rows=True) == []
    assert canaries_on_disk(workspace) == []
    assert list((workspace / "temporary").iterdir()) == []


def test_commands_from_table_to_answer_leave_no_value_anywhere(workspace: Path) -> None:
    person = ("--person", "person", "--max-rows", "2")
    vc.Ledger(workspace / "c.db").create("people", 10)
    account = ("--ledger", "sqlite:///c.db", "--dataset", "people")
    told = [
        on_a_terminal(workspace, *RELEASE, *account, "--out", "r.veil", "private.csv"),
        on_a_terminal(workspace, *RELEASE, *person, "--out", "p.veil", "private.csv"),
        on_a_terminal(workspace, *RELEASE, "--strategy", "tree", "--out", "s.veil", "--json", "private.csv"),
        on_a_terminal(workspace, "--verbose", "info", "r.veil"),
        on_a_terminal(workspace, "--verbose", "query", "r.veil", "job = 'Nurse'"),
        on_a_terminal(workspace, "export", "r.veil", "--by", "job", "--out", "t.xlsx"),
        on_a_terminal(workspace, "report", "r.veil", "--out", "report.html"),
        on_a_terminal(workspace, "ledger", "show", "sqlite:///c.db"),
    ]
    assert (workspace / "r.veil").is_file()
    assert (workspace / "p.veil").is_file()
    assert canaries_in("\n".join(told)) == []
    assert canaries_on_disk(workspace) == []
    assert list((workspace / "temporary").iterdir()) == []


# In one process: errors, tracebacks with locals, logs, warnings


FRAME = pd.DataFrame(
    {"wage": [1.0] * 40 + [float(WAGE)], "job": ["Nurse"] * 40 + [TEXT], "person": ["x"] * 40 + [PERSON]}
)
FITS = FRAME.assign(job="Nurse")
READ_SCHEMA = vc.Schema([vc.Ordinal("wage", edges=[0, 5_000_000, 10_000_000]), vc.Nominal("job", ["Nurse", "Judge"])])
Read = Callable[[pd.DataFrame, Path], object]
# The frames are looked up where they are used: an argument would be a local variable of this file.
READ: dict[str, Callable[[str, Path], object]] = {
    "count": lambda which, _: vc.count(globals()[which], READ_SCHEMA),
    "count persons": lambda which, _: vc.count(globals()[which], READ_SCHEMA, person="person", max_rows=1),
    "release": lambda which, _: vc.release(globals()[which], schema=READ_SCHEMA, epsilon=1),
    "protect": lambda which, folder: vc.protect(
        globals()[which], READ_SCHEMA, f"sqlite:///{folder}/{which}.db", "people", 1
    ),
}


def shown_with_locals(problem: BaseException) -> str:
    """Return what tools that print local variables show of an error: Python's own and rich's."""
    stream = io.StringIO()
    told = Traceback.from_exception(
        type(problem), problem, problem.__traceback__, show_locals=True, locals_max_string=None, locals_max_length=None
    )
    Console(file=stream, width=400).print(told)
    python = traceback.TracebackException.from_exception(problem, capture_locals=True, lookup_lines=True)
    return stream.getvalue() + "".join(python.format()) + str(problem) + repr(problem)


class Heard(logging.Handler):
    def __init__(self) -> None:
        super().__init__(logging.NOTSET)
        self.lines: list[str] = []

    def emit(self, record: logging.LogRecord) -> None:
        self.lines.append(f"{record.getMessage()} {record.args} {record.__dict__}")


def everything_said(read: Callable[[], object]) -> str:
    """Return what is said in whatever way while something is read, and by the error that it ends with."""
    heard, root = Heard(), logging.getLogger()
    level = root.level
    root.addHandler(heard)
    root.setLevel(logging.DEBUG)
    try:
        with warnings.catch_warnings(record=True) as warned:
            warnings.simplefilter("always")
            try:
                found = repr(read())
            except (VeilcubeError, KeyboardInterrupt, MemoryError) as problem:
                found = shown_with_locals(problem)
    finally:
        root.removeHandler(heard)
        root.setLevel(level)
    return "\n".join([found, *heard.lines, *(str(one.message) for one in warned)])


@pytest.mark.parametrize("which", ["FRAME", "FITS"])
@pytest.mark.parametrize("name", READ)
def test_errors_logs_warnings_and_reprs_show_no_value(name: str, which: str, tmp_path: Path) -> None:
    assert canaries_in(everything_said(lambda: READ[name](which, tmp_path))) == []


@pytest.mark.parametrize("fault", [RuntimeError, MemoryError, KeyboardInterrupt, OSError])
@pytest.mark.parametrize("name", READ)
def test_a_fault_of_the_engine_that_quotes_a_row_shows_no_value(
    name: str, fault: type[BaseException], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def quote(*_: object, **__: object) -> object:
        row = f"{TEXT} {PERSON} {WAGE}"
        raise fault() if fault is KeyboardInterrupt else fault(f"could not convert {row}")

    monkeypatch.setattr(Engine, "query", quote)
    monkeypatch.setattr(Engine, "stream", quote)
    assert canaries_in(everything_said(lambda: READ[name]("FITS", tmp_path))) == []


def test_the_search_finds_canaries(tmp_path: Path) -> None:
    def leaks() -> None:
        secret = TEXT
        raise VeilcubeError(f"{len(secret)}")

    assert canaries_in(everything_said(leaks)) == [TEXT]
    assert canaries_in(everything_said(lambda: logging.getLogger("x").debug("%s", f"{WAGE:,}"))) == [f"{WAGE:,}"]
    with zipfile.ZipFile(tmp_path / "a.zip", "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("a", NOTE * 9)
    assert canaries_on_disk(tmp_path) == [("a.zip", NOTE)]
    (tmp_path / "a.bin").write_bytes(b"1" + np.int64(WAGE).tobytes())
    assert ("a.bin", "the number as eight bytes") in canaries_on_disk(tmp_path)


# A service


PATHS = (
    "/", "/index.json", "/releases", "/releases.json", "/releases/private", "/releases/private.veil", "/private.csv",
    "/releases/..%2Fprivate.csv", "/releases/..%2F..%2Fprivate", "/static/..%2Fprivate.csv",
    "/static/../../private.csv",
    "/schemas/private.toml", "/schemas/..%2Fprivate.csv", "/releases/adult/table.csv?by=../private", "/openapi.json",
    "/releases/adult", "/releases/adult/count?where=job%20=%20'Nurse'", "/releases/adult/count?where=1/0",
    "/no/such/page",
    "/releases/%00private.csv", "/releases/adult/table.csv", "/log", "/audit", "/budgets",
)  # fmt: skip


def test_a_service_gives_nothing_of_a_private_table_that_lies_beside_its_files(tmp_path: Path) -> None:
    with serving(tmp_path) as served:
        for folder in (tmp_path, *(path for path in tmp_path.iterdir() if path.is_dir())):
            write_tables(folder)
        kept = served.service.settings.below("releases")
        vc.release(vc.Cube(READ_SCHEMA, [[5, 4], [3, 2]]), epsilon=1).save(kept / "adult.veil")
        told = ""
        for path in PATHS:
            for name in ("mara", "otto", "cora"):
                for accept in ("application/json", "text/html"):
                    answer = served.client.get(path, headers=served.headers(name) | {"accept": accept})
                    told += f"{answer.status_code} {dict(answer.headers)} {answer.text}"
        assert " 200 " in f" {told}"
        assert canaries_in(told) == []
