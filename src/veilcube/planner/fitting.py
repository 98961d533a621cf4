"""What fits: cubes that this machine can hold, and what is counted in place of one that it cannot."""

from veilcube.errors import PlanError
from veilcube.planner.design import Strategy
from veilcube.planner.grouped import GroupedTables
from veilcube.planner.marginals import Marginals
from veilcube.schema import Schema
from veilcube.system import CELLS_WORTH_A_CHECK, available_memory, require_memory

# From so many attributes on, questions are about few of them at a time, and tables of few tell more than trees.
LEAST_ATTRIBUTES = 3
# Cubes beyond this are not counted for "auto": rows are listed instead.
LARGEST_CUBE_COUNTED = 2**24
# Eight tebibytes of counts.
LARGEST_CUBE = 2**40
# A model of all tables takes minutes to fit where attributes are longer.
LONGEST_OF_MODELS = 4096
# The exact counts, the noise, their sum, and room for one copy: 64 bits each.
BYTES_WHILE_RELEASING = 4 * 8
WAYS_OUT = "use strategy='auto', which then counts tables of attributes, or a larger machine"
OF_ONE_ATTRIBUTE = "use a larger machine, or give the attribute wider bins"
NO_TABLE_FITS = "no table of its attributes is small enough, so give the longest wider bins, or use a larger machine"


def has_room_for_cube(schema: Schema) -> bool:
    """Whether this machine can count the cube and add noise to it."""
    if schema.cells <= CELLS_WORTH_A_CHECK:
        return True
    return schema.cells <= LARGEST_CUBE and BYTES_WHILE_RELEASING * schema.cells <= available_memory()


def require_releasing(schema: Schema, words: int = 0) -> None:
    """Refuse to count a cube and to measure what takes so many 64-bit words where memory does not allow it."""
    needed = max(BYTES_WHILE_RELEASING * schema.cells, 8 * (schema.cells + words))
    _require(needed, schema.cells, WAYS_OUT if len(schema) > 1 else OF_ONE_ATTRIBUTE)


def require_releasing_tables(schema: Schema, cells: int) -> None:
    """Refuse to count and measure tables of so many cells where memory does not allow it."""
    _require(BYTES_WHILE_RELEASING * cells, cells, NO_TABLE_FITS if len(schema) > 1 else OF_ONE_ATTRIBUTE)


def _require(needed: int, cells: int, ways_out: str) -> None:
    if needed > BYTES_WHILE_RELEASING * CELLS_WORTH_A_CHECK:
        require_memory(needed, f"releasing {cells:,} cells", ways_out)


def fitting_strategy(wish: Strategy | None, schema: Schema, *, is_given: bool) -> Strategy | None:
    """Return what is wished for; without a wish or questions, and without room for the cube, what counts tables.

    Where questions were named, grouped tables and marginals are compared for them.
    """
    if wish is None:
        return None if is_given or has_room_for_cube(schema) else _tables_for(schema)
    if schema.cells <= LARGEST_CUBE or wish.counts_tables:
        return wish
    raise PlanError(
        f"the cube has {schema.cells:,} cells, more than any machine can count; use strategy='auto', "
        "'grouped tables' or 'marginals', which count tables of attributes"
    )


def _tables_for(schema: Schema) -> Strategy:
    if len(schema) >= LEAST_ATTRIBUTES and max(schema.shape) <= LONGEST_OF_MODELS:
        return GroupedTables()
    pairs = [a * b for place, a in enumerate(schema.shape) for b in schema.shape[:place]]
    return Marginals(k=2) if pairs and len(schema) > 2 and sum(pairs) <= LARGEST_CUBE_COUNTED else Marginals(k=1)


def why_tables(schema: Schema, noise: str) -> str:
    """Say why tables of attributes are counted, before why a family of noise was taken."""
    told = (
        f"the cube has {schema.cells:,} cells, more than this machine can hold, so tables of attributes are counted in "
        "its place"
    )
    return f"{told}. {noise}" if noise else told
