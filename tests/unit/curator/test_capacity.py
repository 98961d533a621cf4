"""Memory: a cube that does not fit is refused before it is allocated."""

from pathlib import Path

import pytest

from veilcube.curator import capacity
from veilcube.errors import CapacityError
from veilcube.schema import Ordinal, Schema

GIBIBYTE = 2**30


def machine(
    monkeypatch: pytest.MonkeyPatch, folder: Path, available: int, container: dict[str, str] | None = None
) -> None:
    (folder / "meminfo").write_text(f"MemTotal: 99999999 kB\nMemAvailable: {available // 1024} kB\n", encoding="ascii")
    for name, text in (container or {}).items():
        (folder / name).write_text(text, encoding="ascii")
    monkeypatch.setattr(capacity, "_MEMORY_FACTS", folder / "meminfo")
    monkeypatch.setattr(capacity, "_CONTAINER", folder)


def test_a_cube_that_fits_is_all_zero() -> None:
    counts = capacity.zero_counts(Schema([Ordinal("a", 0, 9), Ordinal("b", 0, 4)]))
    assert counts.shape == (10, 5)
    assert counts.dtype == "int64"
    assert not counts.any()


def test_the_refusal_tells_what_is_needed_what_there_is_and_what_to_do(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    machine(monkeypatch, tmp_path, 3 * GIBIBYTE)
    with pytest.raises(CapacityError, match=r"536,870,912 cells and needs 4\.0 GiB, but only 3\.0 GiB .* coarser bins"):
        capacity.zero_counts(Schema([Ordinal("a", 1, 2**29)]))


def test_a_container_that_is_smaller_than_the_machine_counts(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    facts = {"memory.max": f"{4 * GIBIBYTE}\n", "memory.current": f"{3 * GIBIBYTE}\n"}
    machine(monkeypatch, tmp_path, 64 * GIBIBYTE, facts | {"memory.stat": f"anon 5\ninactive_file {GIBIBYTE}\n"})
    assert capacity.available_bytes() == 2 * GIBIBYTE


def test_a_container_without_a_limit_has_what_the_machine_has(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    machine(monkeypatch, tmp_path, 5 * GIBIBYTE, {"memory.max": "max\n"})
    assert capacity.available_bytes() == 5 * GIBIBYTE


def test_without_memory_facts_the_page_count_is_used(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(capacity, "_MEMORY_FACTS", tmp_path / "none")
    monkeypatch.setattr(capacity, "_CONTAINER", tmp_path)
    assert capacity.available_bytes() > 2**26
