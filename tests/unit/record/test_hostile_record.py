"""A release file whose parts contradict one another, or ask for endless work, is refused before it costs anything."""

import dataclasses
import json
import zipfile
from collections.abc import Callable
from fractions import Fraction
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest

from support.releases import release_of
from support.veil_files import entries_of
from veilcube.errors import ReleaseFileError
from veilcube.laws.noise import DiscreteLaplace
from veilcube.operators import IdentityOperator
from veilcube.privacy import SequentialEvent
from veilcube.record import (
    NoisyMeasurement,
    ReleaseRecord,
    archive as archive_module,
    open_record,
    require_savable,
    save_record,
)
from veilcube.record.sealed_zip import add_entry
from veilcube.record.strict_json import MAX_JSON_BYTES, dump_json
from veilcube.record.zarr_format import ArrayLayout, metadata_documents, parse_array_document
from veilcube.schema import Nominal, Ordinal, Schema

ARRAY = "measurements/0/values"
SCHEMA = Schema([Ordinal("age", 0, 3)])


def record_of(schema: Schema = SCHEMA) -> ReleaseRecord:
    return release_of(schema, np.ones(schema.shape, np.int64)).record


def write_entries(path: Path, entries: dict[str, bytes]) -> Path:
    with zipfile.ZipFile(path, "w") as archive:
        for name, content in entries.items():
            add_entry(archive, name, content)
    return path


def changed(folder: Path, change: Callable[[dict], object]) -> Path:
    save_record(record_of(), folder / "sound.veil")
    entries = entries_of(folder / "sound.veil")
    manifest = json.loads(entries["veil.json"])
    change(manifest)
    return write_entries(folder / "changed.veil", entries | {"veil.json": json.dumps(manifest).encode()})


def many_events(manifest: dict) -> None:
    parts = [
        {"kind": "laplace", "sensitivity": 1, "scale": f"{10**90 + 7 * i}/{10**89 + 3 * i}"} for i in range(20_000)
    ]
    manifest["privacy"].update(event={"kind": "sequential", "events": parts}, epsilon="1000000")


@pytest.mark.parametrize(
    "change",
    [
        lambda m: m["privacy"].update(epsilon="1e30000000"),
        lambda m: m["privacy"].update(epsilon="1e400"),
        lambda m: m["privacy"].update(epsilon="1" + "0" * 10),
        lambda m: m["privacy"].update(epsilon="0", event={"kind": "sequential", "events": []}),
        lambda m: m["privacy"].update(event={"kind": "sequential", "events": []}),
        lambda m: m["privacy"]["event"].update(scale="1e30000000"),
        lambda m: m["privacy"]["event"].update(sensitivity=2**62 + 1),
        lambda m: m["privacy"]["unit"].update(kind="person", column="id", max_rows=10**30),
        lambda m: m["measurements"][0]["noise"].update(scale="1/1000000"),
        lambda m: m["measurements"].append(m["measurements"][0]),
        lambda m: m["measurements"].clear(),
        lambda m: m.update(measurements=3),
        many_events,
    ],
    ids=["endless epsilon", "huge epsilon", "epsilon above 1e9", "epsilon 0", "no event", "endless scale",
         "huge sensitivity", "huge max_rows", "other noise", "one array twice", "no measurements", "no list",
         "20,000 events"],
)  # fmt: skip
def test_a_manifest_that_is_endless_or_contradicts_itself_is_refused(
    tmp_path: Path, change: Callable[[dict], object]
) -> None:
    with pytest.raises(ReleaseFileError):
        open_record(changed(tmp_path, change))


def test_the_unchanged_manifest_of_these_tests_opens(tmp_path: Path) -> None:
    assert open_record(changed(tmp_path, lambda _: None)).schema == SCHEMA


@pytest.mark.parametrize("extra", [True, False], ids=["an array too many", "another shape"])
def test_arrays_that_the_manifest_does_not_call_for_are_never_decoded(
    tmp_path: Path, extra: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    save_record(record_of(), tmp_path / "sound.veil")
    entries = entries_of(tmp_path / "sound.veil")
    sound = parse_array_document(json.loads(entries[f"{ARRAY}/zarr.json"]))
    large = ArrayLayout((2**20,), (2**20,), "int8", ("x",))
    layouts = {ARRAY: sound, "junk": large} if extra else {ARRAY: large}
    content = {"veil.json": entries["veil.json"]}
    content |= {name: dump_json(document) for name, document in metadata_documents(layouts).items()}
    content |= {f"{ARRAY}/c/0": entries[f"{ARRAY}/c/0"]} if extra else {}
    content["junk/c/0" if extra else f"{ARRAY}/c/0"] = pa.Codec("zstd").compress(bytes(2**20)).to_pybytes()
    path = write_entries(tmp_path / "junk.veil", content)
    assert archive_module.read_archive(path).arrays.keys() == layouts.keys()  # only the manifest speaks against it
    monkeypatch.setattr(archive_module, "_read_arrays", lambda *_: pytest.fail("an array was decoded"))
    with pytest.raises(ReleaseFileError, match="not those that its measurements call for"):
        open_record(path)


def with_values(values: list[int]) -> ReleaseRecord:
    record = record_of()
    part = record.measurements[0]
    measured = NoisyMeasurement(part.operator, np.array(values, np.int64), part.noise)
    return dataclasses.replace(record, measurements=(measured,))


@pytest.mark.parametrize(
    "values", [[2**63 - 1] * 4, [-(2**63), 0, 0, 0], [2**61, 2**61, 0, 0], [2**60, -(2**62), 0, 0]]
)
def test_values_whose_sums_leave_64_bits_are_refused(values: list[int]) -> None:
    with pytest.raises(ReleaseFileError, match="sums leave 64 bits"):
        with_values(values)


@pytest.mark.parametrize("values", [[2**61, 0, 0, 0], [2**59, -(2**59), 2**59, -(2**59)]])
def test_large_values_whose_sums_fit_are_kept(values: list[int]) -> None:
    assert with_values(values).measurements[0].values.tolist() == values


def test_a_record_needs_an_event_that_spends_something_and_declares_the_noise() -> None:
    record = record_of()
    with pytest.raises(ReleaseFileError, match="epsilon above 0"):
        dataclasses.replace(record, statement=dataclasses.replace(record.statement, event=SequentialEvent(())))
    part = dataclasses.replace(record.measurements[0], noise=DiscreteLaplace(Fraction(1, 7)))
    with pytest.raises(ReleaseFileError, match="other noise"):
        dataclasses.replace(record, measurements=(part,))
    nested = dataclasses.replace(record.statement, event=SequentialEvent((record.statement.event,)))
    assert dataclasses.replace(record, statement=nested).statement == nested


@pytest.mark.parametrize("path", [None, 3, b"x.veil"])
def test_what_cannot_name_a_file_is_refused(path: object) -> None:
    with pytest.raises(ReleaseFileError, match="named by a text or a Path"):
        open_record(path)
    with pytest.raises(ReleaseFileError, match="named by a text or a Path"):
        save_record(record_of(), path)


def check(record: ReleaseRecord, operator: IdentityOperator | None = None, **other: object) -> None:
    part = record.measurements[0]
    parts = [(operator or part.operator, other.get("noise", part.noise))]
    plan = other.get("plan", record.plan)
    require_savable(record.schema, other.get("statement", record.statement), parts, plan)


def test_what_passes_the_check_before_a_charge_can_be_saved_and_opened(tmp_path: Path) -> None:
    record = record_of(Schema([Ordinal("age", 0, 3), Nominal("Größe", ["∞", "b"])]))
    check(record)
    save_record(record, tmp_path / "checked.veil")
    assert open_record(tmp_path / "checked.veil").statement == record.statement


def test_what_cannot_be_saved_is_refused_before_a_charge() -> None:
    record = record_of()
    with pytest.raises(ReleaseFileError, match="more than 32 axes"):
        check(record, IdentityOperator((1,) * 33, tuple(f"a{i}" for i in range(33))))
    with pytest.raises(ReleaseFileError, match="different names"):
        check(record, IdentityOperator((2, 2), ("a", "a")))
    with pytest.raises(ReleaseFileError, match="longer than"):
        check(record, plan={"text": "x" * MAX_JSON_BYTES})
    with pytest.raises(ReleaseFileError, match="cannot be described"):
        check(record, plan={"text": "\ud800"})
    with pytest.raises(ReleaseFileError, match="more parts than one file can hold"):
        check(record, IdentityOperator((2**20, 2**20), ("a", "b")))
    with pytest.raises(ReleaseFileError, match="larger epsilon"):
        check(record, IdentityOperator((2**25,), ("a",)), noise=DiscreteLaplace(Fraction(2**40)))
    with pytest.raises(ReleaseFileError, match="fewer digits"):
        check(record, statement=dataclasses.replace(record.statement, epsilon=1 + Fraction(1, 10**400)))


def test_the_manifest_is_written_without_blanks(tmp_path: Path) -> None:
    save_record(record_of(), tmp_path / "compact.veil")
    raw = entries_of(tmp_path / "compact.veil")["veil.json"].decode()
    assert raw == json.dumps(json.loads(raw), ensure_ascii=False, separators=(",", ":"))
