"""How much memory a cube needs and how much this machine can give, asked before anything is allocated."""

import numpy as np
from numpy.typing import NDArray

from veilcube.errors import CapacityError
from veilcube.schema import Schema
from veilcube.system.memory import require_memory

BYTES_PER_CELL = 8  # int64
# What the engine and its batches take beside a large cube.
WORKING_BYTES = 320 * 2**20
WAYS_OUT = "use coarser bins, fewer attributes or a larger machine, or strategy='marginals', which needs no cube"


def zero_counts(schema: Schema) -> NDArray[np.int64]:
    """Allocate the counts of a schema's cube; refuses, before taking any memory, a cube that would not fit."""
    needed, task = schema.cells * BYTES_PER_CELL, f"the cube has {schema.cells:,} cells and"
    require_memory(needed, task, WAYS_OUT, beside=min(needed, WORKING_BYTES))
    try:
        return np.zeros(schema.shape, dtype=np.int64)
    except MemoryError:
        raise CapacityError(f"{task} cannot be allocated as a whole; {WAYS_OUT}") from None
