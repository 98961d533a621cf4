"""Saving and opening ``.veil`` files: a record to and from one archive of open formats.

The layout is described in docs/decisions/0003-release-file.md; docs/how-to/read-without-veilcube.md reads it with
other programs.
"""

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from math import prod
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from veilcube.errors import ReleaseFileError, VeilcubeError
from veilcube.laws import Noise, read_noise
from veilcube.operators import Operator, read_operator
from veilcube.privacy import PrivacyStatement
from veilcube.record.archive import KNOWN_FACTS, OtherReadings, read_archive, require_writable, write_archive
from veilcube.record.cap import MeasuredCap
from veilcube.record.measurement import NoisyMeasurement
from veilcube.record.record import LARGEST_SUM, ReleaseRecord
from veilcube.schema import Schema

# What the ledger adds to a statement after the check and before saving (the names of a dataset and of a charge), and
# what is measured beyond a cap, which is never longer.
_ROOM_FOR_CHARGE = "x" * 16_384


def save_record(record: ReleaseRecord, path: str | Path, readings: OtherReadings | None = None) -> None:
    """Write a record to ``path``, whole or not at all, with what other programs read beside it."""
    parts = [(part.operator, part.noise) for part in record.measurements]
    manifest = _manifest(record.schema, record.statement, parts, record.plan, record.created, record.made_with)
    if record.known_facts is not None:
        manifest[KNOWN_FACTS] = dict(record.known_facts)
    write_archive(
        _read_path(path),
        manifest | ({} if record.cap is None else {"cap": record.cap.to_dict()}),
        {name: array for i, part in enumerate(record.measurements) for name, array in _arrays(i, part).items()},
        dimensions=_dimensions([part.operator for part in record.measurements]),
        readings=readings,
    )


def require_savable(
    schema: Schema,
    statement: PrivacyStatement,
    parts: Sequence[tuple[Operator, Noise]],
    plan: Mapping[str, object],
) -> None:
    """Raise ``ReleaseFileError`` if a release of these parts could not be saved or opened again, whatever its values.

    Meant for the moment before a charge: everything that is known by then is built as saving would build it.
    """
    roomy = statement if statement.charged_to is not None else statement.charged(_ROOM_FOR_CHARGE)
    require_writable(
        _manifest(schema, roomy, parts, plan, "0000-00-00T00:00:00+00:00", "veilcube " + "0" * 64),
        _shapes([operator for operator, _ in parts]),
        dimensions=_dimensions([operator for operator, _ in parts]),
    )
    try:
        PrivacyStatement.from_dict(statement.to_dict())
        for _, noise in parts:
            read_noise(noise.to_json())
    except (VeilcubeError, ValueError) as problem:
        raise ReleaseFileError(
            "the privacy statement or its noise could not be read back from a file; choose an epsilon with fewer digits"
        ) from problem
    # The noise on n cells sums to about n times its mean size; twice that leaves room for chance.
    if any(2 * prod(operator.measurement_shape) * noise.size >= LARGEST_SUM for operator, noise in parts):
        raise ReleaseFileError(
            "the noise is so large for so many cells that sums leave 64 bits; choose a larger epsilon or fewer cells"
        )


def open_record(path: str | Path) -> ReleaseRecord:
    """Read a record from an untrusted file: no code runs, and every part is checked before memory is taken for it."""
    drafts: list[_Draft] = []

    def expected_shapes(manifest: Mapping[str, object]) -> Mapping[str, tuple[int, ...]]:
        drafts.append(_read_draft(manifest))
        return _shapes([operator for operator, _ in drafts[0].parts])

    with _well_formed(path):
        arrays = read_archive(_read_path(path), expected=expected_shapes).arrays
        draft = drafts[0]
        measurements = tuple(
            NoisyMeasurement(_completed(i, operator, arrays), arrays[_array_name(i)], noise)
            for i, (operator, noise) in enumerate(draft.parts)
        )
        facts = (draft.schema, draft.statement, measurements, draft.plan, draft.created, draft.made_with)
        return ReleaseRecord(*facts, draft.cap, draft.known_facts)


@dataclass(frozen=True)
class _Draft:
    """What the manifest says of a release, before its arrays are read."""

    schema: Schema
    statement: PrivacyStatement
    parts: tuple[tuple[Operator, Noise], ...]
    plan: Mapping[str, object]
    created: str
    made_with: str
    cap: MeasuredCap | None
    known_facts: Mapping[str, object] | None


def _read_draft(manifest: Mapping[str, object]) -> _Draft:
    entries = manifest["measurements"]
    if not isinstance(entries, list):
        raise ReleaseFileError("the release does not list its measurements; ask for a new copy of the file")
    schema = Schema.from_dict(_mapping(manifest["schema"]))
    parts = tuple(_read_part(_mapping(entry), _array_name(i)) for i, entry in enumerate(entries))
    if any(operator.cell_shape != schema.shape for operator, _ in parts):
        raise ReleaseFileError("a measurement of the release is for another schema")
    return _Draft(
        schema=schema,
        statement=PrivacyStatement.from_dict(_mapping(manifest["privacy"])),
        parts=parts,
        plan=_mapping(manifest["plan"]),
        created=str(manifest["created"]),
        made_with=str(manifest["made_with"]),
        cap=MeasuredCap.from_dict(_mapping(manifest["cap"])) if "cap" in manifest else None,
        known_facts=_mapping(manifest[KNOWN_FACTS]) if KNOWN_FACTS in manifest else None,
    )


def _read_part(entry: Mapping[str, object], array_name: str) -> tuple[Operator, Noise]:
    if entry["array"] != array_name:
        raise ReleaseFileError("the release does not name its arrays in their order; ask for a new copy of the file")
    return read_operator(_mapping(entry["operator"])), read_noise(_mapping(entry["noise"]))


def _manifest(
    schema: Schema,
    statement: PrivacyStatement,
    parts: Sequence[tuple[Operator, Noise]],
    plan: Mapping[str, object],
    created: str,
    made_with: str,
) -> dict[str, object]:
    return {
        "schema": schema.to_dict(),
        "privacy": statement.to_dict(),
        "plan": dict(plan),
        "measurements": [
            {"array": _array_name(i), "operator": operator.to_dict(), "noise": noise.to_json()}
            for i, (operator, noise) in enumerate(parts)
        ],
        "created": created,
        "made_with": made_with,
    }


@contextmanager
def _well_formed(path: str | Path) -> Iterator[None]:
    """Report whatever is wrong with the content of a file as one kind of error."""
    try:
        yield
    except ReleaseFileError:
        raise
    except (VeilcubeError, KeyError, TypeError, ValueError, AttributeError, RecursionError, OverflowError) as problem:
        raise ReleaseFileError(f"{path} is not a well-formed release; ask for a new copy of the file") from problem


def _read_path(path: object) -> Path:
    if not isinstance(path, str | Path):
        raise ReleaseFileError(f"a release file is named by a text or a Path, not by {type(path).__name__}")
    return Path(path)


def _mapping(value: object) -> Mapping[str, object]:
    if not isinstance(value, Mapping):
        raise TypeError("a mapping was expected")
    return value


def _array_name(position: int, name: str = "values") -> str:
    return f"measurements/{position}/{name}"


def _shapes(operators: Sequence[Operator]) -> dict[str, tuple[int, ...]]:
    """Return the shapes of all arrays of a release: the measured values, and what operators keep as arrays."""
    shapes: dict[str, tuple[int, ...]] = {}
    for i, operator in enumerate(operators):
        shapes[_array_name(i)] = operator.measurement_shape
        shapes |= {_array_name(i, name): shape for name, shape in operator.array_shapes.items()}
    return shapes


def _dimensions(operators: Sequence[Operator]) -> dict[str, tuple[str, ...]]:
    """Return the names of the axes of all arrays; one that an operator keeps has the axes of its values, or its own."""
    dimensions: dict[str, tuple[str, ...]] = {}
    for i, operator in enumerate(operators):
        own, names = operator.array_dimensions, ["values", *operator.array_shapes]
        dimensions |= {_array_name(i, name): own.get(name, operator.dimensions) for name in names}
    return dimensions


def _arrays(position: int, part: NoisyMeasurement) -> dict[str, NDArray[np.int64]]:
    kept = part.operator.arrays()
    return {_array_name(position): part.values} | {_array_name(position, name): kept[name] for name in kept}


def _completed(position: int, operator: Operator, arrays: Mapping[str, NDArray[np.int64]]) -> Operator:
    return operator.with_arrays({name: arrays[_array_name(position, name)] for name in operator.array_shapes})
