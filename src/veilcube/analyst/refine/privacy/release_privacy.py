"""What facts read off the table do to the privacy of a whole release.

Every answer of a refined release obeys the facts, so whoever asks for the sum that a fact is about reads its constant.
If one unit changes the constant, neighbouring tables give answers that never coincide: the loss is infinite, whatever
the noise. A constant that no unit changes is the same on neighbouring tables, so refining with it is post-processing,
and the release keeps what it states: its epsilon, or its epsilon with its delta.
"""

import numpy as np
from numpy.typing import NDArray

from veilcube.analyst.refine.facts import RefinementPrivacy, ReleaseFacts, explain
from veilcube.privacy import Neighbours
from veilcube.record import ReleaseRecord


def check_facts(record: ReleaseRecord, rows: ReleaseFacts, *, only_marked: bool = False) -> RefinementPrivacy:
    """Return the loss of a release refined with facts, all its answers together.

    Facts count as read off the table unless their source is public; with ``only_marked`` those of an unstated source
    are trusted.
    """
    changes = _changes_with_one_unit(record, rows)
    suspects = ("exact private statistic",) if only_marked else ("exact private statistic", "unstated")
    is_read = np.array([fact.source in suspects for fact in rows.facts], dtype=bool)
    dangerous = tuple(dict.fromkeys(rows.facts[row].sentence for row in np.flatnonzero(changes & is_read)))
    epsilon, delta = float(record.statement.epsilon), float(record.statement.delta)
    loss = np.inf if dangerous else epsilon
    scales = np.array([measurement.noise.size for measurement in record.measurements])
    return RefinementPrivacy(
        loss=loss,
        epsilon=epsilon,
        scale=scales,
        scale_needed=np.full_like(scales, np.inf) if dangerous else scales,
        loss_of_each=np.empty(0),
        coordinates=(),
        worst=np.empty(0),
        is_post_processing=not dangerous,
        dangerous=dangerous,
        explanation=explain(not dangerous, dangerous, loss, epsilon, delta),
    )


def _changes_with_one_unit(record: ReleaseRecord, rows: ReleaseFacts) -> NDArray[np.bool_]:
    """Return which facts one unit can change: those that weigh any cell, or, if rows are exchanged, not all alike."""
    statement = record.statement
    is_exchanged = statement.neighbours is Neighbours.REPLACE and statement.unit.kind == "row"
    changes: NDArray[np.bool_] = np.ones(len(rows), dtype=bool)
    boxes, last = rows.sums.boxes, np.array(record.schema.shape) - 1
    is_whole = np.all((boxes.low == 0) & (boxes.high == last), axis=1)
    is_whole[list(boxes.gapped)] = False
    matrix = rows.sums.matrix
    boxes_of = np.diff(matrix.indptr)
    # A fact about one box needs no look at its cells.
    single = np.flatnonzero(boxes_of == 1)
    box, weight = matrix.indices[matrix.indptr[single]], matrix.data[matrix.indptr[single]]
    changes[single] = (weight != 0) & ~(is_exchanged & is_whole[box])
    changes[boxes_of == 0] = False
    for row in np.flatnonzero(boxes_of > 1).tolist():
        weights = rows.sums.take(np.array([row])).spread(np.ones(1))
        changes[row] = np.ptp(weights) > 1e-9 if is_exchanged else np.abs(weights).max() > 1e-9
    return changes
