"""Releases, charges, answers, exports and the command itself are killed with kill -9 at random moments, many times.

After every kill: what is in a file is whole and was paid for, what was shown is stored, and no charge is lost. After
one more run of each, nothing temporary is left. The moments cover whole courses of work, from a process that has
everything loaded, so that work is what gets killed.
"""

import random
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from fractions import Fraction
from pathlib import Path

import pytest

import veilcube as vc
from support.command_line import write_people, write_schema

# Has all loaded, and forks a worker for each line that it reads: how long until it is killed, or 0 for one course.
NURSERY = """
import os, signal, sys, time, warnings
from pathlib import Path
import veilcube as vc
from veilcube.cli import main

warnings.simplefilter("ignore")
folder = Path(sys.argv[1])
schema = vc.Schema([vc.Ordinal("age", 1, 50)])
cube = vc.Cube(schema, [3] * 50)

def course():
    account = {"ledger": f"sqlite:///{folder / 'budget.db'}", "dataset": "people"}
    release = vc.release(cube, epsilon="1/1000", strategy="identity", **account)
    number = release.privacy.charged_to.rsplit(" ", 1)[-1]
    release.save(folder / f"{number}.veil")
    release.export(folder / f"{number}.csv", by=["age"])
    table = vc.protect(cube, **account)
    answer = table.noisy_count(epsilon="1/1000", fresh=True)
    with open(folder / "shown.txt", "a") as shown:
        shown.write(f"{int(answer.value)}\\n")
    words = ["release", str(folder / "people.csv"), "--schema", str(folder / "people.toml"), "--epsilon", "1/1000"]
    main([*words, "--ledger", account["ledger"], "--dataset", "table", "--out", str(folder / "last.veil"), "--force"])

course()
print("ready", file=sys.stderr, flush=True)
for line in sys.stdin:
    child = os.fork()
    if child == 0:
        while True:
            course()
            if not float(line):
                os._exit(0)
    if float(line):
        time.sleep(float(line))
        os.kill(child, signal.SIGKILL)
    _, status = os.waitpid(child, 0)
    print(os.waitstatus_to_exitcode(status), file=sys.stderr, flush=True)
"""
LINES = 51  # of an export: its head and fifty ages


@contextmanager
def nursery(folder: Path, temporary: Path) -> Iterator["subprocess.Popen[str]"]:
    command = [sys.executable, "-c", NURSERY, str(folder)]
    environment = {"TMPDIR": str(temporary), "VEILCUBE_CACHE": "", "PATH": "/usr/bin:/bin", "OPENBLAS_NUM_THREADS": "1"}
    pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.DEVNULL, "stderr": subprocess.PIPE}
    with subprocess.Popen(command, text=True, env=environment, **pipes) as process:  # type: ignore[call-overload]
        assert process.stderr is not None
        assert hears(process) == "ready"
        yield process
        process.stdin.close()


def hears(process: "subprocess.Popen[str]") -> str:
    """Return the next word of the nursery, past what commands say."""
    assert process.stderr is not None
    for line in process.stderr:
        if line.strip() in ("ready", "0", str(-signal.SIGKILL)):
            return line.strip()
    raise AssertionError("the nursery died")


def runs(process: "subprocess.Popen[str]", seconds: float) -> str:
    """Let a worker run for so long, or one course; returns how it ended."""
    assert process.stdin is not None
    process.stdin.write(f"{seconds}\n")
    process.stdin.flush()
    return hears(process)


def check(folder: Path, charges_before: int) -> int:
    """Check that all that is there is whole and paid for; returns the number of charges."""
    ledger = vc.Ledger(folder / "budget.db")
    history = ledger.history("people")
    charges = {str(charge.id): charge for charge in history}
    for file in folder.glob("*.veil"):
        release = vc.open(file)
        if file.stem != "last":
            assert release.privacy == charges[file.stem].statement
    for file in folder.glob("*.csv"):
        if file.stem != "people":
            assert len(file.read_text(encoding="utf-8").splitlines()) == LINES
            assert file.stem in charges
    assert ledger.budget("people").spent == sum((charge.epsilon for charge in charges.values()), Fraction(0))
    shown = [int(line) for line in (folder / "shown.txt").read_text().splitlines()]
    stored = [answer.values[0] for answer in history.answers if answer.charge is not None]
    kept = iter(stored)
    assert all(value in kept for value in shown), "an answer was shown that is not stored"
    last = vc.open(folder / "last.veil").privacy
    assert any(charge.statement == last for charge in ledger.history("table"))
    assert ledger.budget("table").spent == sum((charge.epsilon for charge in ledger.history("table")), Fraction(0))
    found = len(charges) + len(list(ledger.history("table")))
    assert found >= charges_before, "a charge was lost"
    return found


@pytest.mark.parametrize("kills", [20, pytest.param(200, marks=pytest.mark.slow)])
def test_kill_9_anywhere_leaves_nothing_half_nothing_unpaid_and_nothing_behind(tmp_path: Path, kills: int) -> None:
    folder, temporary = tmp_path / "work", tmp_path / "temporary"
    for path in (folder, temporary):
        path.mkdir()
    write_schema(folder / "people.toml")
    write_people(folder / "people.csv", 60)
    ledger = vc.Ledger(folder / "budget.db")
    for dataset in ("people", "table"):
        ledger.create(dataset, 1000)
    chance, charges = random.Random(kills), 0
    with nursery(folder, temporary) as process:
        charges = first = check(folder, 0)
        for _ in range(kills):
            assert runs(process, chance.uniform(0.01, 0.6)) == str(-signal.SIGKILL)
            charges = check(folder, charges)
        assert charges > first, "no worker ever got as far as a charge"
        assert runs(process, 0) == "0"
    assert check(folder, charges) == charges + 3
    assert [path.name for path in folder.iterdir() if path.suffix in (".tmp", ".db-journal")] == []
    assert [path.name for path in temporary.iterdir()] == []
