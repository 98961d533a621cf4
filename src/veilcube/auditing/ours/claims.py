"""Declared sensitivities against what random and climbing searches find, on a domain too large to list."""

from collections.abc import Sequence

import numpy as np

from veilcube.auditing.report import AuditFinding, Witness
from veilcube.operators import NeighbourName, Operator
from veilcube.system import Integers

# Random pairs of cells, and climbs from random ones: one coordinate is moved at a time while the change grows.
RANDOM_PAIRS, CLIMBS, IDLE = 200, 4, 40

Cell = tuple[int, ...]


def largest_change(operator: Operator, neighbours: NeighbourName, *, squared: bool, seed: int = 0) -> tuple[int, Cell]:
    """Return the largest change that a search finds when a row comes, or moves, and the cells that show it."""
    rng = np.random.default_rng(seed)
    starts = [_cells(operator, neighbours, rng) for _ in range(RANDOM_PAIRS)]
    best = max(starts, key=lambda cells: _change(operator, cells, squared=squared))
    for cells in (best, *starts[:CLIMBS]):
        best = max(
            best,
            _climbed(operator, cells, rng, squared=squared),
            key=lambda one: _change(operator, one, squared=squared),
        )
    return _change(operator, best, squared=squared), tuple(number for cell in best for number in cell)


def _cells(operator: Operator, neighbours: NeighbourName, rng: np.random.Generator) -> list[Cell]:
    return [
        tuple(int(rng.integers(size)) for size in operator.cell_shape) for _ in range(1 + (neighbours == "replace"))
    ]


def _column(operator: Operator, cell: Cell) -> Integers:
    table = np.zeros(operator.cell_shape, dtype=np.int64)
    table[cell] = 1
    return operator.apply(table).ravel()


def _change(operator: Operator, cells: Sequence[Cell], *, squared: bool) -> int:
    columns = [_column(operator, cell) for cell in cells]
    change = (columns[0] if len(columns) == 1 else columns[0] - columns[1]).astype(object)
    return int((change**2).sum() if squared else abs(change).sum())


def _climbed(operator: Operator, start: list[Cell], rng: np.random.Generator, *, squared: bool) -> list[Cell]:
    best, height, idle = list(start), _change(operator, start, squared=squared), 0
    while idle < IDLE * len(start):
        which, axis = int(rng.integers(len(best))), int(rng.integers(len(operator.cell_shape)))
        moved = list(best[which])
        moved[axis] = int(rng.integers(operator.cell_shape[axis]))
        tried = [tuple(moved) if number == which else cell for number, cell in enumerate(best)]
        reached = _change(operator, tried, squared=squared)
        idle = 0 if reached > height else idle + 1
        if reached >= height:
            best, height = tried, reached
    return best


def check_claims(operators: Sequence[Operator]) -> AuditFinding:
    """Hold declared sensitivities, by size and squared, against what is found."""
    looked = 0
    for operator in operators:
        for neighbours in ("add-remove", "replace"):
            name: NeighbourName = "replace" if neighbours == "replace" else "add-remove"
            for squared in (False, True):
                declared = operator.sensitivity_l2_squared(name) if squared else operator.sensitivity(name)
                found, cells = largest_change(operator, name, squared=squared, seed=looked)
                looked += 1
                if found > declared:
                    kind = "squared L2" if squared else "L1"
                    event = f"a row changes what is measured by {found} in {kind}, and {declared} is declared ({name})"
                    return AuditFinding("claims", False, f"{event}.", float("inf"), Witness((cells,), (), event))
    words = f"{looked:,} declared sensitivities of {len(operators)} measurements: no search found a larger change."
    return AuditFinding("claims", True, words, None, None, {"searches": looked})
