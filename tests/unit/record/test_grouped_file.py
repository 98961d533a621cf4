"""A release of grouped tables keeps its groups in its file; one that declares less than it reveals is refused."""

import dataclasses
import json
from collections.abc import Callable
from fractions import Fraction
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest

import veilcube as vc
from support.releases import gaussian_release_of, release_of
from support.veil_files import edit_document, entries_of
from veilcube.errors import ReleaseFileError
from veilcube.planner.grouped.choosing import UNITS
from veilcube.privacy import LaplaceEvent, ParallelEvent, SequentialEvent
from veilcube.privacy.event import Event
from veilcube.record import ReleaseRecord, open_record, require_savable, save_record
from veilcube.record.archive import read_archive, write_archive

NAMES = [f"v{number}" for number in range(30)]
SCHEMA = vc.Schema([vc.Ordinal("a", 0, 199), vc.Nominal("b", NAMES), vc.Ordinal("c", 0, 9)])
LABELS = "measurements/1/labels"


def grouped_record(neighbours: str = "add-remove", family: str = "laplace") -> ReleaseRecord:
    counts = np.random.default_rng(3).poisson(0.05, SCHEMA.shape)
    if family == "gaussian":
        return gaussian_release_of(SCHEMA, counts, "1/8", 1, vc.GroupedTables()).record
    if neighbours == "replace":
        return vc.release(vc.Cube(SCHEMA, counts), 1, vc.GroupedTables(), neighbours).record
    return release_of(SCHEMA, counts, 1, 1, vc.GroupedTables()).record


@pytest.fixture(scope="module")
def record() -> ReleaseRecord:
    found = grouped_record()
    assert found.measurements[1].operator.array_shapes, "some values share a group"
    return found


@pytest.mark.parametrize("family", ["laplace", "gaussian"])
def test_it_comes_back_with_its_groups(family: str, tmp_path: Path) -> None:
    record = grouped_record(family=family)
    save_record(record, tmp_path / "grouped.veil")
    again = open_record(tmp_path / "grouped.veil")
    assert (again.schema, again.statement) == (record.schema, record.statement)
    for ours, theirs in zip(record.measurements, again.measurements, strict=True):
        np.testing.assert_array_equal(ours.values, theirs.values)
        assert (ours.noise, ours.operator.to_dict()) == (theirs.noise, theirs.operator.to_dict())
        for number in range(len(ours.operator.groupings)):
            np.testing.assert_array_equal(
                ours.operator.group_of_values(number), theirs.operator.group_of_values(number)
            )


def test_groups_and_values_name_different_axes(record: ReleaseRecord, tmp_path: Path) -> None:
    save_record(record, tmp_path / "grouped.veil")
    entries = entries_of(tmp_path / "grouped.veil")
    names = {
        array: json.loads(entries[f"measurements/1/{array}/zarr.json"])["dimension_names"]
        for array in ("values", "labels")
    }
    assert names == {"values": ["grouped_cell"], "labels": ["grouped_value"]}


@pytest.mark.parametrize("sizes", [(5, 4, 3), (1, 1, 1), (3000, 1, 40), (12,) * 25], ids=str)
def test_what_passes_the_check_before_a_charge_can_be_saved(sizes: tuple[int, ...], tmp_path: Path) -> None:
    schema = vc.Schema([vc.Ordinal(f"a{axis}", 1, size) for axis, size in enumerate(sizes)])
    plan = vc.plan(schema, 1, "grouped tables")
    rows = pa.table({name: [1, 1] for name in schema.names})
    release = vc.release(rows, plan=plan, schema=schema)
    require_savable(schema, release.privacy, plan.parts, plan.to_dict())
    release.save(tmp_path / "grouped.veil")
    assert open_record(tmp_path / "grouped.veil").schema == schema


def restated(record: ReleaseRecord, event: Event, epsilon: Fraction) -> ReleaseRecord:
    statement = dataclasses.replace(record.statement, event=event, epsilon=epsilon)
    return dataclasses.replace(record, statement=statement)


def events_of(record: ReleaseRecord) -> tuple[LaplaceEvent, LaplaceEvent]:
    event = record.statement.event
    assert isinstance(event, SequentialEvent)
    first, second = event.events
    assert isinstance(first, LaplaceEvent)
    assert isinstance(second, LaplaceEvent)
    return first, second


def test_both_steps_need_all_that_they_declare(record: ReleaseRecord) -> None:
    first, second = events_of(record)
    assert restated(record, record.statement.event, record.statement.epsilon) is not None
    for less in (
        SequentialEvent((dataclasses.replace(first, sensitivity=first.sensitivity - 1), second)),
        SequentialEvent((first, dataclasses.replace(second, sensitivity=UNITS - 1))),
        ParallelEvent((first, second)),
        SequentialEvent((dataclasses.replace(first, sensitivity=10**6), dataclasses.replace(second, sensitivity=1))),
    ):
        with pytest.raises(ReleaseFileError, match="declares less than its strategy reveals"):
            restated(record, less, Fraction(10**6))
    with pytest.raises(ReleaseFileError, match="other noise than its privacy statement declares"):
        restated(record, first, Fraction(10**6))


def test_exchanged_rows_need_twice_the_sensitivity(record: ReleaseRecord) -> None:
    with pytest.raises(ReleaseFileError, match="declares less than its strategy reveals"):
        dataclasses.replace(record, statement=dataclasses.replace(record.statement, neighbours="replace"))
    assert grouped_record("replace").statement.neighbours == "replace"


def test_multipliers_beyond_those_that_are_declared_are_refused(record: ReleaseRecord) -> None:
    first, second = record.measurements
    more = tuple(times + (number == 0) for number, times in enumerate(second.operator.multipliers))
    larger = dataclasses.replace(second, operator=dataclasses.replace(second.operator, multipliers=more))
    with pytest.raises(ReleaseFileError, match="declares less than its strategy reveals"):
        dataclasses.replace(record, measurements=(first, larger))


# Files that make no sense


def _one_multiplier_less(operator: dict) -> None:
    operator["multipliers"].pop()


def _another_table(operator: dict) -> None:
    operator["tables"].append(operator["tables"][0])
    operator["multipliers"].append(1)


def _fewer_groups(operator: dict) -> None:
    number = operator["tables"][-1][0]
    operator["groupings"][number][1] -= 1


def _longer_attribute(operator: dict) -> None:
    operator["shape"][0] = 2**40


def _another_cube(operator: dict) -> None:
    operator["shape"][2] += 1


@pytest.mark.parametrize(
    "change", [_one_multiplier_less, _another_table, _fewer_groups, _longer_attribute, _another_cube]
)
def test_a_file_whose_tables_contradict_its_values_is_refused(
    record: ReleaseRecord, change: Callable[[dict], None], tmp_path: Path
) -> None:
    path = tmp_path / "grouped.veil"
    save_record(record, path)
    edit_document(path, "veil.json", lambda manifest: change(manifest["measurements"][1]["operator"]))
    with pytest.raises(ReleaseFileError):
        open_record(path)


@pytest.mark.parametrize("label", [-1, 200, 2**62])
def test_a_file_whose_labels_number_no_group_is_refused(record: ReleaseRecord, label: int, tmp_path: Path) -> None:
    path = tmp_path / "grouped.veil"
    save_record(record, path)
    archive = read_archive(path)
    labels = archive.arrays[LABELS].copy()
    labels[-1] = label
    write_archive(path, archive.manifest, archive.arrays | {LABELS: labels}, dimensions=archive.dimensions)
    with pytest.raises(ReleaseFileError):
        open_record(path)
