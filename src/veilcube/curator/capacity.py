"""How much memory a cube needs and how much this machine can give, asked before anything is allocated."""

import os
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from veilcube.errors import CapacityError
from veilcube.schema import Schema

BYTES_PER_CELL = 8  # int64
# What the engine and its batches take beside a large cube.
WORKING_BYTES = 400 * 2**20

_MEMORY_FACTS = Path("/proc/meminfo")
_CONTAINER = Path("/sys/fs/cgroup")


def available_bytes() -> int:
    """Return the memory that can still be taken: the machine's, or the container's if that is less."""
    container = _container_bytes()
    machine = _machine_bytes()
    return machine if container is None else min(machine, container)


def zero_counts(schema: Schema) -> NDArray[np.int64]:
    """Allocate the counts of a schema's cube; refuses, before taking any memory, a cube that would not fit."""
    needed = schema.cells * BYTES_PER_CELL
    available = available_bytes()
    refusal = CapacityError(
        f"the cube has {schema.cells:,} cells and needs {_gibibytes(needed)}, but only {_gibibytes(available)} of "
        "memory are available; use coarser bins, fewer attributes or a larger machine"
    )
    if needed + min(needed, WORKING_BYTES) > available:
        raise refusal
    try:
        return np.zeros(schema.shape, dtype=np.int64)
    except MemoryError:
        raise refusal from None


def require_memory(needed: int, task: str) -> None:
    """Refuse a task that would need more memory than can be taken, before it begins."""
    available = available_bytes()
    if needed > available:
        raise CapacityError(
            f"{task} needs {_gibibytes(needed)}, but only {_gibibytes(available)} of memory are available; "
            "use coarser bins, fewer attributes or a larger machine"
        )


def _gibibytes(size: int) -> str:
    return f"{size / 2**30:,.1f} GiB"


def _machine_bytes() -> int:
    try:
        for line in _MEMORY_FACTS.read_text(encoding="ascii").splitlines():
            if line.startswith("MemAvailable:"):
                return int(line.split()[1]) * 1024
    except (OSError, ValueError, IndexError):
        pass  # not Linux, or a kernel that hides it: the system's own page count is the next best answer
    return os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")


def _container_bytes() -> int | None:
    try:
        limit = (_CONTAINER / "memory.max").read_text(encoding="ascii").strip()
        if limit == "max":
            return None
        used = int((_CONTAINER / "memory.current").read_text(encoding="ascii"))
        facts = dict(line.split() for line in (_CONTAINER / "memory.stat").read_text(encoding="ascii").splitlines())
        # Files that were read lately count as used, but the kernel drops them when memory is asked for.
        return max(int(limit) - used + int(facts.get("inactive_file", 0)), 0)
    except (OSError, ValueError):
        return None
