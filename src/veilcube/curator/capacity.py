"""How much memory a cube needs and how much this machine can give, asked before anything is allocated."""

import numpy as np
from numpy.typing import NDArray

from veilcube.errors import CapacityError
from veilcube.release.memory import available_memory
from veilcube.schema import Schema

BYTES_PER_CELL = 8  # int64
# What the engine and its batches take beside a large cube.
WORKING_BYTES = 400 * 2**20


def zero_counts(schema: Schema) -> NDArray[np.int64]:
    """Allocate the counts of a schema's cube; refuses, before taking any memory, a cube that would not fit."""
    needed = schema.cells * BYTES_PER_CELL
    available = available_memory()
    refusal = CapacityError(
        f"the cube has {schema.cells:,} cells and needs {_gibibytes(needed)}, but only {_gibibytes(available)} of "
        "memory are available; use coarser bins, fewer attributes or a larger machine, or strategy='marginals', which "
        "needs no cube"
    )
    if needed + min(needed, WORKING_BYTES) > available:
        raise refusal
    try:
        return np.zeros(schema.shape, dtype=np.int64)
    except MemoryError:
        raise refusal from None


def require_memory(needed: int, task: str) -> None:
    """Refuse a task that would need more memory than can be taken, before it begins."""
    available = available_memory()
    if needed > available:
        raise CapacityError(
            f"{task} needs {_gibibytes(needed)}, but only {_gibibytes(available)} of memory are available; "
            "use coarser bins, fewer attributes or a larger machine"
        )


def _gibibytes(size: int) -> str:
    return f"{size / 2**30:,.1f} GiB"
