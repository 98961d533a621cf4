"""The memory that may be taken is what the machine, or a container around it, has left."""

import os
import resource
from pathlib import Path

import pytest

from veilcube.errors import CapacityError
from veilcube.system import memory
from veilcube.system.memory import available_memory, format_bytes, require_cells, require_memory

ALL_MEMORY = os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")


def set_container(monkeypatch: pytest.MonkeyPatch, folder: Path, limit: str, used: str) -> None:
    (folder / "memory.max").write_text(f"{limit}\n")
    (folder / "memory.current").write_text(f"{used}\n")
    monkeypatch.setattr(memory, "_CONTROL_GROUP", folder)


def test_some_but_not_all_memory_is_available() -> None:
    assert 0 < available_memory() < ALL_MEMORY


def test_the_limit_of_a_container_counts(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    set_container(monkeypatch, tmp_path, "3000000", "1000000")
    assert available_memory() == 2_000_000


def test_file_pages_that_the_kernel_would_drop_count_as_available(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    set_container(monkeypatch, tmp_path, "3000000", "1000000")
    (tmp_path / "memory.stat").write_text("anon 5\ninactive_file 400000\n")
    assert available_memory() == 2_400_000


def test_a_container_over_its_limit_has_nothing_left(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    set_container(monkeypatch, tmp_path, "3000000", "3000001")
    assert available_memory() == 0


def test_a_container_without_a_limit_has_the_memory_of_the_machine(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    set_container(monkeypatch, tmp_path, "max", "1000000")
    (tmp_path / "meminfo").write_text("MemTotal: 9 kB\nMemAvailable:    7 kB\n")
    monkeypatch.setattr(memory, "_MEMINFO", tmp_path / "meminfo")
    assert available_memory() == 7 * 1024


def test_half_of_all_memory_is_assumed_where_the_system_does_not_say(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr(memory, "_MEMINFO", tmp_path / "missing")
    monkeypatch.setattr(memory, "_CONTROL_GROUP", tmp_path / "missing")
    assert available_memory() == ALL_MEMORY // 2


@pytest.mark.parametrize(
    ("size", "text"),
    [
        (0, "0 bytes"),
        (999, "999 bytes"),
        (1000, "1 kB"),
        (123_456, "123 kB"),
        (800_000_000, "800 MB"),
        (8 * 10**15, "8 PB"),
        (8 * 10**20, "800,000 PB"),
    ],
)
def test_sizes_are_written_for_people(size: int, text: str) -> None:
    assert format_bytes(size) == text


def test_a_limit_on_the_address_space_counts(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    (tmp_path / "statm").write_text("1000 500 100 1 0 400 0\n")
    monkeypatch.setattr(memory, "_ADDRESS_SPACE", tmp_path / "statm")
    used = 1000 * resource.getpagesize()
    monkeypatch.setattr(memory.resource, "getrlimit", lambda _: (used + 12_345, resource.RLIM_INFINITY))
    assert available_memory() == 12_345


def test_the_tightest_of_all_groups_around_the_process_counts(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    (tmp_path / "own").write_text("4:memory:/outer/inner\n1:cpu:/elsewhere\n0::/outer/inner\n")
    monkeypatch.setattr(memory, "_OWN_GROUP", tmp_path / "own")
    inner, older = tmp_path / "outer" / "inner", tmp_path / "memory" / "outer"
    inner.mkdir(parents=True)
    older.mkdir(parents=True)
    (inner / "memory.max").write_text("5000000\n")
    (inner / "memory.current").write_text("1000000\n")
    set_container(monkeypatch, tmp_path, "max", "1000000")
    assert available_memory() == 4_000_000
    (older / "memory.limit_in_bytes").write_text("3000000\n")
    (older / "memory.usage_in_bytes").write_text("2000000\n")
    (older / "memory.stat").write_text("inactive_file 1\ntotal_inactive_file 500000\n")
    assert available_memory() == 1_500_000


def test_a_task_that_needs_more_than_there_is_is_refused_with_a_way_out(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(memory, "available_memory", lambda: 2**30)
    require_memory(2**29, "sorting", beside=2**29)
    with pytest.raises(CapacityError, match=r"sorting needs 0\.5 GiB, but only 1\.0 GiB .*; sort less"):
        require_memory(2**29, "sorting", "sort less", beside=2**29 + 1)
    require_cells(2**22, 2**20, "a few")
    with pytest.raises(CapacityError, match=r"many over 4,194,305 cells needs"):
        require_cells(2**22 + 1, 2**20, "many")
