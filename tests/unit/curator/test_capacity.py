"""Memory: a cube that does not fit is refused before it is allocated."""

import pytest

from veilcube.curator import counting as capacity
from veilcube.errors import CapacityError
from veilcube.schema import Ordinal, Schema
from veilcube.system import memory

GIBIBYTE = 2**30


def test_a_cube_that_fits_is_all_zero() -> None:
    counts = capacity.zero_counts(Schema([Ordinal("a", 0, 9), Ordinal("b", 0, 4)]))
    assert counts.shape == (10, 5)
    assert counts.dtype == "int64"
    assert not counts.any()


def test_the_refusal_tells_what_is_needed_what_there_is_and_what_to_do(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(memory, "available_memory", lambda: 3 * GIBIBYTE)
    with pytest.raises(CapacityError, match=r"536,870,912 cells and needs 4\.0 GiB, but only 3\.0 GiB .* coarser bins"):
        capacity.zero_counts(Schema([Ordinal("a", 1, 2**29)]))


def test_a_task_that_needs_too_much_is_refused_by_name(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(memory, "available_memory", lambda: GIBIBYTE)
    memory.require_memory(GIBIBYTE, "drawing the noise")
    with pytest.raises(CapacityError, match=r"drawing the noise needs 2\.0 GiB, but only 1\.0 GiB"):
        memory.require_memory(2 * GIBIBYTE, "drawing the noise")
