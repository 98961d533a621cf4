"""A command that is told to end cleans up first: no folder with private rows stays behind."""

import json
import os
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import veilcube as vc
from veilcube.cli import main

SCHEMA = '[[attribute]]\nname = "x"\nkind = "ordinal"\nlow = 0\nhigh = 9\n'
ROWS = 3_000_000
SECONDS_TO_START = 60


def start_release(folder: Path) -> subprocess.Popen[str]:
    """Start a release that takes some seconds, and return when its folder for spilled rows is there."""
    rows = np.arange(ROWS)
    pq.write_table(pa.table({"who": rows % 1_000_003, "x": rows % 10}), folder / "t.parquet")
    (folder / "s.toml").write_text(SCHEMA)
    (folder / "tmp").mkdir()
    words = ["release", "t.parquet", "--schema", "s.toml", "--epsilon", "1", "--out", "r.veil"]
    process = subprocess.Popen(
        [sys.executable, "-m", "veilcube.cli", *words, "--person", "who", "--max-rows", "2"],
        cwd=folder,
        env=os.environ | {"TMPDIR": str(folder / "tmp")},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    deadline = time.monotonic() + SECONDS_TO_START
    while not list((folder / "tmp").glob("veilcube-*")):
        assert process.poll() is None, process.stderr
        assert time.monotonic() < deadline
        time.sleep(0.01)
    time.sleep(0.2)  # so that the engine is at work
    return process


@pytest.mark.parametrize("ending", [signal.SIGTERM, signal.SIGHUP, signal.SIGINT])
def test_a_release_that_is_told_to_end_leaves_nothing_behind(tmp_path: Path, ending: signal.Signals) -> None:
    process = start_release(tmp_path)
    process.send_signal(ending)
    _, told = process.communicate(timeout=800)
    assert process.returncode == 128 + ending
    assert "error" not in told
    assert "Traceback" not in told
    assert list((tmp_path / "tmp").iterdir()) == []
    assert sorted(path.name for path in tmp_path.iterdir()) == ["s.toml", "t.parquet", "tmp"]


# Two million cells: drawing the noise and saving it take long enough to be interrupted in.
WIDE = '[[attribute]]\nname = "x"\nkind = "ordinal"\nlow = 0\nhigh = 2000000\n'
ENDINGS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)


def start_charged_release(folder: Path, *more: str) -> subprocess.Popen[str]:
    """Start a release that is charged to a ledger, and return when the charge is on disk."""
    folder.mkdir()
    (folder / "t.csv").write_text("x\n5\n")
    (folder / "s.toml").write_text(WIDE)
    ledger = vc.Ledger(folder / "budget.db")
    ledger.create("people", 1)
    words = ["release", "t.csv", "--schema", "s.toml", "--epsilon", "1", "--strategy", "identity", "--out", "r.veil"]
    process = subprocess.Popen(
        [sys.executable, "-m", "veilcube.cli", *words, "--ledger", "budget.db", "--dataset", "people", *more],
        cwd=folder,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    deadline = time.monotonic() + SECONDS_TO_START
    while not ledger.budget("people").spent:
        assert process.poll() is None
        assert time.monotonic() < deadline
        time.sleep(0.001)
    return process


def _is_told_what_was_spent(folder: Path, process: subprocess.Popen[str], ending: signal.Signals) -> bool:
    """Check how a charged release ended; return whether it was interrupted at all."""
    out, told = process.communicate(timeout=800)
    assert "Traceback" not in told
    assert "unexpected" not in told
    if "Try next" in out:  # it was done, and told so, before the signal came
        assert told == ""
        assert (folder / "r.veil").exists()
        return False
    assert process.returncode == 128 + ending
    assert told.startswith("error: interrupted; ")
    assert told.count("\n") == 1
    assert "asking again charges again" in told or "was saved as r.veil" in told, told
    if "was saved" in told:
        vc.open(folder / "r.veil")
    return True


@pytest.mark.parametrize("ending", ENDINGS)
def test_a_release_that_is_interrupted_after_its_charge_says_what_was_spent(
    tmp_path: Path, ending: signal.Signals
) -> None:
    interrupted = []
    for number, delay in enumerate((0.0, 0.1)):
        process = start_charged_release(tmp_path / str(number))
        time.sleep(delay)
        process.send_signal(ending)
        interrupted.append(_is_told_what_was_spent(tmp_path / str(number), process, ending))
    assert any(interrupted)


@pytest.mark.slow
@pytest.mark.parametrize("ending", ENDINGS)
def test_a_release_that_is_interrupted_at_any_moment_says_what_was_spent(
    tmp_path: Path, ending: signal.Signals
) -> None:
    interrupted = []
    for number in range(16):
        process = start_charged_release(tmp_path / str(number))
        time.sleep(0.04 * number)
        process.send_signal(ending)
        interrupted.append(_is_told_what_was_spent(tmp_path / str(number), process, ending))
    assert any(interrupted)  # how many depends on how fast the machine is


def test_a_program_that_reads_json_is_told_what_was_spent(tmp_path: Path) -> None:
    interrupted = []
    for number in range(4):
        process = start_charged_release(tmp_path / str(number), "--json")
        process.send_signal(signal.SIGTERM)
        out, told = process.communicate(timeout=800)
        assert told == ""
        facts = json.loads(out)
        if "error" not in facts:  # it was done before the signal came
            continue
        error = facts["error"]
        assert (process.returncode, error["exit_code"], error["kind"]) == (143, 143, "Interrupted")
        assert "charge" in error["message"]
        interrupted.append(number)
        break
    assert interrupted


@pytest.mark.parametrize(
    ("place", "said"),
    [
        ("veilcube.session.releasing._carry_out", "charge 1 to dataset 'people' stands"),
        ("veilcube.curator.ledger.ledger.issue_receipt", "dataset 'people' may have been charged"),
    ],
)
def test_in_python_an_interruption_stays_one_and_carries_the_note(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, place: str, said: str
) -> None:
    def interrupt(*_: object) -> None:
        os.kill(os.getpid(), signal.SIGINT)
        time.sleep(60)

    ledger = vc.Ledger(tmp_path / "budget.db")
    ledger.create("people", 1)
    cube = vc.Cube(vc.Schema([vc.Ordinal("x", 0, 7)]), [1] * 8)
    monkeypatch.setattr(place, interrupt)
    with pytest.raises(KeyboardInterrupt) as caught:
        vc.release(cube, epsilon=1, strategy="identity", ledger=ledger, dataset="people")
    assert [said in note for note in getattr(caught.value, "__notes__", [])] == [True]
    assert ledger.budget("people").spent == 1


def start_loading() -> subprocess.Popen[str]:
    """Start the command and return as soon as it has begun to load its libraries."""
    process = subprocess.Popen(
        [sys.executable, "-m", "veilcube.cli", "--version"], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    )
    deadline = time.monotonic() + SECONDS_TO_START
    while "numpy" not in Path(f"/proc/{process.pid}/maps").read_text():
        assert time.monotonic() < deadline
        time.sleep(0.001)
    return process


@pytest.mark.skipif(not Path("/proc/self/maps").exists(), reason="needs /proc to see what a process has loaded")
@pytest.mark.parametrize("delay", [0.0, 0.1, 0.3, 0.6, 1.0])
def test_an_interruption_while_the_command_loads_is_quiet(delay: float) -> None:
    process = start_loading()
    time.sleep(delay)
    process.send_signal(signal.SIGINT)
    out, told = process.communicate(timeout=800)
    assert told == ""
    assert process.returncode == 130 or (process.returncode == 0 and out.startswith("veilcube"))


def test_a_signal_that_was_ignored_stays_ignored(tmp_path: Path) -> None:
    before = signal.signal(signal.SIGHUP, signal.SIG_IGN)  # which a child inherits, as under nohup
    try:
        process = start_release(tmp_path)
    finally:
        signal.signal(signal.SIGHUP, before)
    process.send_signal(signal.SIGHUP)
    process.communicate(timeout=800)
    assert process.returncode == 0
    assert (tmp_path / "r.veil").exists()


def test_the_handlers_are_as_before_when_the_command_has_ended() -> None:
    before = [signal.getsignal(number) for number in ENDINGS]
    assert main(["--version"]) == 0
    assert [signal.getsignal(number) for number in ENDINGS] == before


def test_the_command_also_runs_outside_the_main_thread() -> None:
    codes: list[int] = []
    thread = threading.Thread(target=lambda: codes.append(main(["--version"])))
    thread.start()
    thread.join()
    assert codes == [0]
