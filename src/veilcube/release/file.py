"""Saving and opening ``.veil`` files: a record to and from one archive of open formats.

The layout is described in docs/decisions/0003-release-file.md; docs/how-to/read-without-veilcube.md reads it with
other programs.
"""

from collections.abc import Mapping
from pathlib import Path
from typing import cast

from veilcube.errors import ReleaseFileError, VeilcubeError
from veilcube.operators import read_operator
from veilcube.privacy import PrivacyStatement
from veilcube.privacy.noise import DiscreteLaplace
from veilcube.release.archive import Archive, read_archive, write_archive
from veilcube.release.measurement import NoisyMeasurement
from veilcube.release.record import ReleaseRecord
from veilcube.release.strict_json import JsonValue
from veilcube.schema import Schema


def save_record(record: ReleaseRecord, path: str | Path) -> None:
    """Write a record to ``path``, whole or not at all."""
    manifest: dict[str, object] = {
        "schema": record.schema.to_dict(),
        "privacy": record.statement.to_dict(),
        "plan": dict(record.plan),
        "measurements": [
            {"array": _array_name(i), "operator": part.operator.to_dict(), "noise": part.noise.to_json()}
            for i, part in enumerate(record.measurements)
        ],
        "created": record.created,
        "made_with": record.made_with,
    }
    write_archive(
        Path(path),
        cast(dict[str, JsonValue], manifest),  # every to_dict returns JSON values; the writer refuses anything else
        {_array_name(i): part.values for i, part in enumerate(record.measurements)},
        dimensions={_array_name(i): part.operator.dimensions for i, part in enumerate(record.measurements)},
    )


def open_record(path: str | Path) -> ReleaseRecord:
    """Read a record from an untrusted file: no code runs, and every part is checked before memory is taken for it."""
    archive = read_archive(Path(path))
    try:
        return _read_record(archive)
    except ReleaseFileError:
        raise
    except (VeilcubeError, KeyError, TypeError, ValueError, AttributeError, RecursionError) as problem:
        raise ReleaseFileError(f"{path} is not a well-formed release; ask for a new copy of the file") from problem


def _read_record(archive: Archive) -> ReleaseRecord:
    manifest = archive.manifest
    entries = manifest["measurements"]
    if not isinstance(entries, list):
        raise TypeError("measurements must be a list")
    return ReleaseRecord(
        schema=Schema.from_dict(_mapping(manifest["schema"])),
        statement=PrivacyStatement.from_dict(_mapping(manifest["privacy"])),
        measurements=tuple(_read_measurement(archive, _mapping(entry)) for entry in entries),
        plan=_mapping(manifest["plan"]),
        created=str(manifest["created"]),
        made_with=str(manifest["made_with"]),
    )


def _read_measurement(archive: Archive, entry: Mapping[str, object]) -> NoisyMeasurement:
    operator = read_operator(_mapping(entry["operator"]))
    noise = DiscreteLaplace.from_json(_mapping(entry["noise"]))
    return NoisyMeasurement(operator, archive.arrays[str(entry["array"])], noise)


def _mapping(value: object) -> Mapping[str, object]:
    if not isinstance(value, Mapping):
        raise TypeError("a mapping was expected")
    return value


def _array_name(position: int) -> str:
    return f"measurements/{position}/values"
