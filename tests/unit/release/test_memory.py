"""The memory that may be taken is what the machine, or a container around it, has left."""

import os
from pathlib import Path

import pytest

from veilcube.release import memory
from veilcube.release.memory import available_memory, format_bytes

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
