"""A file of an adaptive release, or of a staged tree, that declares less than it reveals is refused."""

import dataclasses
import json
from fractions import Fraction
from pathlib import Path

import numpy as np
import pytest

import veilcube as vc
from support.releases import release_of
from support.veil_files import entries_of
from veilcube.errors import ReleaseFileError
from veilcube.privacy import LaplaceEvent, ParallelEvent, SequentialEvent
from veilcube.privacy.event import Event
from veilcube.record import ReleaseRecord

SCHEMA = vc.Schema([vc.Ordinal("a", 0, 7), vc.Ordinal("b", 0, 7)])
COUNTS = np.arange(64).reshape(8, 8)


def adaptive_record(split: float = 0.5) -> ReleaseRecord:
    return release_of(SCHEMA, COUNTS, 1, 1, vc.Adaptive(split=split, side=4)).record


def restated(record: ReleaseRecord, event: Event, epsilon: Fraction) -> ReleaseRecord:
    statement = dataclasses.replace(record.statement, event=event, epsilon=epsilon)
    return dataclasses.replace(record, statement=statement)


def test_what_both_steps_declare_is_accepted() -> None:
    record = adaptive_record()
    dearer = SequentialEvent((LaplaceEvent(1, Fraction(2)), LaplaceEvent(3, Fraction(2))))
    assert restated(record, dearer, Fraction(2)).statement.epsilon == 2


@pytest.mark.parametrize(
    "event",
    [
        LaplaceEvent(1, Fraction(2)),
        ParallelEvent((LaplaceEvent(1, Fraction(2)), LaplaceEvent(1, Fraction(2)))),
        SequentialEvent((LaplaceEvent(2, Fraction(2)), LaplaceEvent(2, Fraction(20)))),
    ],
    ids=["one event for both steps", "as if no row were in both", "another scale than the second step has"],
)
def test_two_steps_that_declare_less_than_their_cost_are_refused(event: Event) -> None:
    with pytest.raises(ReleaseFileError, match="declares less than its strategy reveals"):
        restated(adaptive_record(), event, Fraction(3))


def test_exchanged_rows_need_twice_the_sensitivity_of_both_steps() -> None:
    record = adaptive_record()
    statement = dataclasses.replace(record.statement, neighbours="replace")
    with pytest.raises(ReleaseFileError, match="declares less than its strategy reveals"):
        dataclasses.replace(record, statement=statement)


@pytest.mark.parametrize("order", [[1], [1, 0], [0, 1, 1]], ids=["regions", "regions first", "regions twice"])
def test_regions_without_their_cells_are_refused_on_opening(order: list[int]) -> None:
    record = adaptive_record()
    with pytest.raises(ReleaseFileError, match="regions of a release are measured once, after its cells"):
        dataclasses.replace(record, measurements=tuple(record.measurements[number] for number in order))


def test_labels_and_totals_name_different_axes(tmp_path: Path) -> None:
    vc.release(vc.Cube(SCHEMA, COUNTS), 1, vc.Adaptive(split=0.5, side=4)).save(tmp_path / "a.veil")
    entries = entries_of(tmp_path / "a.veil")
    names = {
        array: json.loads(entries[f"measurements/1/{array}/zarr.json"])["dimension_names"]
        for array in ("values", "labels")
    }
    assert names == {"values": ["region"], "labels": ["cell"]}


def test_a_staged_tree_that_declares_less_than_its_dearest_cell_is_refused() -> None:
    line = vc.Schema([vc.Ordinal("age", 0, 63)])
    record = release_of(line, np.arange(64), 1, 2, vc.Tree(refine=True)).record
    assert len(record.measurements) > 1
    scales = sorted({part.noise.scale for part in record.measurements})
    as_if_apart = ParallelEvent(tuple(LaplaceEvent(1, scale) for scale in scales))
    with pytest.raises(ReleaseFileError, match="declares less than its strategy reveals"):
        restated(record, as_if_apart, record.statement.epsilon)
