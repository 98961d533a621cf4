"""A disk that is full, or may not be written: whatever is refused, files are whole, and nothing is given away."""

import os
from pathlib import Path

import pytest

import veilcube as vc
from support.children import message_with_little_disk, message_without_privileges

SCHEMA = vc.Schema([vc.Ordinal("age", 1, 2000)])
CUBE = vc.Cube(SCHEMA, [3] * 2000)


def release_and_save(folder: Path) -> None:
    ledger = f"sqlite:///{folder / 'budget.db'}"
    release = vc.release(CUBE, epsilon="1/10", strategy="identity", ledger=ledger, dataset="people")
    release.save(folder / "a.veil")
    release.export(folder / "a.csv", by=["age"])


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    vc.Ledger(tmp_path / "budget.db").create("people", 1)
    vc.release(CUBE, epsilon=1, strategy="identity")  # compiled before disks are small
    return tmp_path


# From no room for a page of the ledger, over room for a charge and not for a release, to room for all.
@pytest.mark.parametrize("room", [0, 1_000, 20_000, 60_000, 90_000, 10_000_000])
def test_on_a_full_disk_files_are_whole_and_releases_are_paid_for(room: int, folder: Path) -> None:
    message = message_with_little_disk(lambda: release_and_save(folder), file_bytes=room)
    ledger = vc.Ledger(folder / "budget.db")
    charges = list(ledger.history("people"))
    assert ledger.budget("people").spent == sum(charge.epsilon for charge in charges)
    assert [path.name for path in folder.iterdir() if path.suffix == ".tmp"] == []
    if (folder / "a.veil").exists():
        assert vc.open(folder / "a.veil").privacy == charges[0].statement
    if (folder / "a.csv").exists():
        assert len((folder / "a.csv").read_text().splitlines()) == 2001
    if room <= 1_000:
        assert message
        assert charges == []
    if room == 10_000_000:
        assert not message
    assert "\n" not in message
    assert (folder / "a.csv").exists() == (not message)
    # There is room again: what is left of the budget can be spent.
    ledger.charge("people", vc.release(CUBE, epsilon="1/10", strategy="identity").privacy, purpose="afterwards")


def test_on_a_disk_that_may_not_be_written_nothing_is_drawn(folder: Path) -> None:
    for path in (folder, folder.parent):
        path.chmod(0o755)
    (folder / "budget.db").chmod(0o444)
    folder.chmod(0o555)
    if not os.access(folder, os.X_OK):
        pytest.skip("the folder of the tests is closed to other users")
    message = message_without_privileges(lambda: release_and_save(folder))
    folder.chmod(0o755)
    assert message
    assert "\n" not in message
    assert sorted(path.suffix for path in folder.iterdir()) == sorted(
        path.suffix for path in folder.iterdir() if "budget" in path.name
    )
    assert list(vc.Ledger(folder / "budget.db").history("people")) == []
