"""What a process killed with kill -9 leaves behind is removed by the next one; what is in use stays."""

import os
import re
import signal
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from veilcube.curator.tables import Engine
from veilcube.system.files import atomic_file, hold, remove_leftovers

SAVING = """
import sys
from pathlib import Path
from veilcube.system import atomic_file
with atomic_file(Path(sys.argv[1]) / f"{sys.argv[2]}.veil") as stream:
    stream.write(b"half")
    stream.flush()
    print("ready", flush=True)
    sys.stdin.readline()
"""
COUNTING = """
import sys
from pathlib import Path
from veilcube.curator.tables import Engine
with Engine() as engine:
    spilled = Path(engine._folder.name) / "spilled" / "rows.tmp"
    spilled.parent.mkdir()
    spilled.write_text("a row")
    print("ready", flush=True)
    sys.stdin.readline()
"""
RACING = """
import sys
from pathlib import Path
from veilcube.curator.tables.engine import _private_folder, _FOLDERS
from veilcube.system import atomic_file
from veilcube.system import remove_leftovers
folder = Path(sys.argv[1])
for number in range(150):
    with atomic_file(folder / f"{sys.argv[2]}.veil") as stream:
        stream.write(b"whole")
    private, lock = _private_folder()
    remove_leftovers(folder, _FOLDERS)
    (Path(private.name) / "rows").write_text("a row")
    private.cleanup()
"""


@contextmanager
def _running(program: str, folder: Path, name: str = "a") -> Iterator["subprocess.Popen[str]"]:
    started = subprocess.Popen(
        [sys.executable, "-c", program, str(folder), name],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
        env=os.environ | {"TMPDIR": str(folder)},
    )
    try:
        assert started.stdout is not None
        assert started.stdout.readline() == "ready\n"
        yield started
    finally:
        started.kill()
        started.communicate()


def _kill(process: "subprocess.Popen[str]") -> None:
    os.kill(process.pid, signal.SIGKILL)
    assert process.wait() == -signal.SIGKILL


def _save(folder: Path) -> None:
    with atomic_file(folder / "mine.veil") as stream:
        stream.write(b"mine")


def _count(folder: Path) -> None:
    with Engine():
        pass


@pytest.mark.parametrize(("program", "work"), [(SAVING, _save), (COUNTING, _count)], ids=["save", "count"])
def test_what_kill_9_leaves_is_removed_by_the_next_run_and_what_is_used_stays(
    program: str, work: object, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    with _running(program, tmp_path, "killed") as killed:
        (left,) = tmp_path.iterdir()
        with _running(program, tmp_path, "alive") as alive:
            (used,) = set(tmp_path.iterdir()) - {left}
            _kill(killed)
            assert left.exists()
            work(tmp_path)  # type: ignore[operator]
            assert not left.exists()
            assert used.exists()
            alive.communicate("go on\n")
            assert alive.returncode == 0
    assert {path.name for path in tmp_path.iterdir()} <= {"alive.veil", "mine.veil"}


def test_runs_that_save_and_sweep_at_once_lose_nothing(tmp_path: Path) -> None:
    environment = os.environ | {"TMPDIR": str(tmp_path)}
    racing = [
        subprocess.Popen([sys.executable, "-c", RACING, str(tmp_path), f"file{number}"], env=environment)
        for number in range(3)
    ]
    assert [process.wait(timeout=800) for process in racing] == [0, 0, 0]
    assert {path.name for path in tmp_path.iterdir()} == {"file0.veil", "file1.veil", "file2.veil"}
    assert {path.read_bytes() for path in tmp_path.iterdir()} == {b"whole"}


def test_only_what_is_ours_and_has_such_a_name_is_removed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    kept = tmp_path / "kept"
    kept.mkdir()
    (kept / "file").write_text("here")
    (tmp_path / "left-link").symlink_to(kept)
    (tmp_path / "other").write_text("here")
    os.mkfifo(tmp_path / "left-pipe")
    (tmp_path / "left-file").write_text("gone")
    (tmp_path / "left-folder").mkdir()
    (tmp_path / "left-folder" / "rows").write_text("gone")
    names = re.compile("left-.*")
    with monkeypatch.context() as somebody:
        somebody.setattr(os, "geteuid", lambda: os.getuid() + 1)
        remove_leftovers(tmp_path, names)
        assert len(list(tmp_path.iterdir())) == 6
    remove_leftovers(tmp_path, names)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["kept", "left-link", "left-pipe", "other"]
    assert (kept / "file").exists()
    remove_leftovers(tmp_path / "nowhere", names)


def test_what_was_swept_before_it_could_be_locked_is_noticed(tmp_path: Path) -> None:
    path = tmp_path / "left-file"
    with path.open("w") as made:
        assert hold(made.fileno(), path)
        with path.open() as sweeper:
            assert not hold(sweeper.fileno(), path)
    with path.open("w") as late:
        remove_leftovers(tmp_path, re.compile("left-.*"))
        assert not hold(late.fileno(), path)
