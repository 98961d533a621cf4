"""A command that is told to end cleans up first: no folder with private rows stays behind."""

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
    _, told = process.communicate(timeout=60)
    assert process.returncode == 128 + ending
    assert "error" not in told
    assert "Traceback" not in told
    assert list((tmp_path / "tmp").iterdir()) == []
    assert sorted(path.name for path in tmp_path.iterdir()) == ["s.toml", "t.parquet", "tmp"]


def test_a_signal_that_was_ignored_stays_ignored(tmp_path: Path) -> None:
    before = signal.signal(signal.SIGHUP, signal.SIG_IGN)  # which a child inherits, as under nohup
    try:
        process = start_release(tmp_path)
    finally:
        signal.signal(signal.SIGHUP, before)
    process.send_signal(signal.SIGHUP)
    process.communicate(timeout=120)
    assert process.returncode == 0
    assert (tmp_path / "r.veil").exists()


def test_the_handlers_are_as_before_when_the_command_has_ended() -> None:
    before = [signal.getsignal(number) for number in (signal.SIGTERM, signal.SIGHUP)]
    assert main(["--version"]) == 0
    assert [signal.getsignal(number) for number in (signal.SIGTERM, signal.SIGHUP)] == before


def test_the_command_also_runs_outside_the_main_thread() -> None:
    codes: list[int] = []
    thread = threading.Thread(target=lambda: codes.append(main(["--version"])))
    thread.start()
    thread.join()
    assert codes == [0]
