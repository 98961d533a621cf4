"""A save happens whole or not at all: on a full disk, without permission, when interrupted, and when killed."""

import os
import signal
import stat
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from support.children import killed_child, message_with_little_disk, message_without_privileges
from support.veil_files import is_small, save_for_ever, whole_save, write_small
from veilcube.errors import ReleaseFileError
from veilcube.record.archive import read_archive
from veilcube.system.files import atomic_file


def wait_until(condition: Callable[[], bool]) -> None:
    deadline = time.monotonic() + 60
    while not condition():
        assert time.monotonic() < deadline, "waited for a minute in vain"
        time.sleep(0.0005)


def test_a_full_disk_leaves_the_older_file_and_nothing_else(tmp_path: Path) -> None:
    path = write_small(tmp_path / "kept.veil")
    message = message_with_little_disk(lambda: save_for_ever(path), file_bytes=1_000_000)
    assert "could not be saved" in message
    assert "free some space" in message
    assert list(tmp_path.iterdir()) == [path]
    assert is_small(read_archive(path))


@pytest.mark.parametrize("file_bytes", [0, 10, 1000, 5_000_000])
def test_a_full_disk_leaves_no_file_where_there_was_none(tmp_path: Path, file_bytes: int) -> None:
    assert "free some space" in message_with_little_disk(
        lambda: save_for_ever(tmp_path / "new.veil"), file_bytes=file_bytes
    )
    assert list(tmp_path.iterdir()) == []


def test_a_killed_save_leaves_the_last_whole_file(tmp_path: Path) -> None:
    path = tmp_path / "killed.veil"
    interrupted = 0
    for seconds in (0, 0.001, 0.003, 0.01, 0.02, 0.03, 0.05, 0.1):
        with killed_child(lambda: save_for_ever(path)) as child:
            unfinished = tmp_path / f".veil-{child}-0.tmp"
            wait_until(lambda unfinished=unfinished: path.exists() and unfinished.exists())
            time.sleep(seconds)
        assert whole_save(path) >= 0
        interrupted += unfinished.exists()
    assert interrupted, "no kill came in the middle of a save, so this test has shown nothing"


def test_an_interrupted_save_leaves_the_older_file_and_nothing_else(tmp_path: Path) -> None:
    path = write_small(tmp_path / "kept.veil")
    with pytest.raises(KeyboardInterrupt), atomic_file(path) as stream:  # noqa: PT012
        stream.write(b"half of a")
        stream.flush()
        assert len(list(tmp_path.iterdir())) == 2
        signal.raise_signal(signal.SIGINT)
    assert list(tmp_path.iterdir()) == [path]
    assert is_small(read_archive(path))


def test_a_folder_without_permission_is_reported(tmp_path: Path) -> None:
    closed = tmp_path / "closed"
    closed.mkdir(mode=0o500)
    message = message_without_privileges(lambda: write_small(closed / "new.veil"))
    assert "could not be saved" in message
    assert "that you may write to" in message


def test_a_missing_folder_is_reported(tmp_path: Path) -> None:
    with pytest.raises(ReleaseFileError, match="create its folder first"):
        write_small(tmp_path / "missing" / "new.veil")
    with pytest.raises(ReleaseFileError, match="create its folder first"):
        write_small(write_small(tmp_path / "file.veil") / "new.veil")


def test_a_folder_or_a_device_is_never_replaced(tmp_path: Path) -> None:
    (tmp_path / "folder.veil").mkdir()
    os.mkfifo(tmp_path / "pipe.veil")
    for name in ("folder.veil", "pipe.veil"):
        with pytest.raises(ReleaseFileError, match="name a file"):
            write_small(tmp_path / name)
    assert sorted(found.name for found in tmp_path.iterdir()) == ["folder.veil", "pipe.veil"]
    assert stat.S_ISFIFO((tmp_path / "pipe.veil").stat().st_mode)


@pytest.mark.parametrize("name", ["nul\0.veil", "n" * 300])
def test_a_name_that_no_file_can_have_is_refused(tmp_path: Path, name: str) -> None:
    with pytest.raises(ReleaseFileError):
        write_small(tmp_path / name)
    assert list(tmp_path.iterdir()) == []


def test_the_longest_allowed_name_can_be_saved(tmp_path: Path) -> None:
    assert is_small(read_archive(write_small(tmp_path / ("n" * 250 + ".veil"))))


def test_a_link_goes_on_pointing_at_the_saved_file(tmp_path: Path) -> None:
    (tmp_path / "data").mkdir()
    (tmp_path / "link.veil").symlink_to(tmp_path / "data" / "real.veil")
    write_small(tmp_path / "link.veil")
    assert (tmp_path / "link.veil").is_symlink()
    assert is_small(read_archive(tmp_path / "data" / "real.veil"))


def test_a_new_file_follows_the_umask_and_an_older_one_keeps_its_permissions(tmp_path: Path) -> None:
    previous = os.umask(0o027)
    try:
        path = write_small(tmp_path / "new.veil")
    finally:
        os.umask(previous)
    assert stat.S_IMODE(path.stat().st_mode) == 0o640
    path.chmod(0o604)
    write_small(path)
    assert stat.S_IMODE(path.stat().st_mode) == 0o604


def test_a_stale_temporary_file_of_a_dead_process_is_in_nobodys_way(tmp_path: Path) -> None:
    stale = tmp_path / f".veil-{os.getpid()}-0.tmp"
    stale.write_bytes(b"left behind")
    assert is_small(read_archive(write_small(tmp_path / "new.veil")))
    assert not stale.exists()
