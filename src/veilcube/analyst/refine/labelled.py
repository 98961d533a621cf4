"""Known counts that bring labels: each goes to the cell that its label names, whatever order they come in.

Frames sort their groups in their own way, and a published table may list them in another. Labels are never ignored.
"""

from collections.abc import Mapping, Sequence

import numpy as np
from numpy.typing import NDArray

from veilcube.errors import QueryError
from veilcube.schema import Schema


def labels_of(counts: object) -> dict[object, object] | None:
    """Return counts by their labels: of a mapping, or of a series whose index is not just 0, 1, 2, and so on."""
    if isinstance(counts, Mapping):
        return dict(counts)
    index = getattr(counts, "index", None)
    if index is None or callable(index) or not hasattr(counts, "items"):
        return None
    labels = list(index)
    if labels == list(range(len(labels))):
        return None
    return dict(zip(labels, np.asarray(counts).tolist(), strict=True))


def arrange(schema: Schema, names: Sequence[str], labelled: Mapping[object, object]) -> NDArray[np.float64]:
    """Return labelled counts as the marginal over some attributes; refuses labels that are not exactly its cells."""
    attributes = [schema[name] for name in names]
    shape = tuple(attribute.size for attribute in attributes)
    places = [{label: cell for cell, label in enumerate(attribute.labels())} for attribute in attributes]
    table = np.full(shape, np.nan)
    for label, count in labelled.items():
        parts = label if isinstance(label, tuple) else (label,)
        if len(parts) != len(names) or any(str(part) not in place for part, place in zip(parts, places, strict=True)):
            raise QueryError(
                f"c has a count for {label!r}, which is no cell of the marginal over {', '.join(names)}; "
                f"its cells are labelled as {tuple(next(iter(place)) for place in places)!r}"
            )
        table[tuple(place[str(part)] for part, place in zip(parts, places, strict=True))] = _number(count)
    if np.isnan(table).any():
        raise QueryError(
            f"c lacks counts for some cells of the marginal over {', '.join(names)}; give every cell, 0 where nobody is"
        )
    return table


def _number(count: object) -> float:
    if isinstance(count, bool) or not isinstance(count, int | float | np.integer | np.floating):
        raise QueryError("c must hold numbers: one known count for each label")
    return float(count)
