"""Tables inside a release file: estimates with labels, for programs that do not know what was measured.

CSV entries are read straight out of the zip file by pandas and by R, the array ``cells`` by whatever knows Zarr. They
are worked out from the measurements, as everything is; veilcube does not read them.
"""

import re
from collections.abc import Iterator, Sequence
from io import BytesIO
from pathlib import Path
from typing import Any

from veilcube.analyst.export.cells import axis_values
from veilcube.analyst.export.exporting import Exporting
from veilcube.analyst.export.files import Facts, write_tables
from veilcube.analyst.export.tables import CountTable
from veilcube.errors import VeilcubeError
from veilcube.query import Answers
from veilcube.record import OtherReadings, save_record
from veilcube.system import Floats

# Estimating so many takes a moment, and they take no more room than the measurements of a small release.
FEW_CELLS = 2**12
MOST_CELLS = 2**16
MOST_ROWS_OF_A_TABLE = 2**14
_CONFIDENCE = 0.95
_LONGEST_NAME = 60


def save_with_tables(release: Exporting, path: str | Path, tables: bool | None) -> None:
    """Save a release, with its tables if they are wanted; by default if they are few and quickly found."""
    save_record(release.record, path)
    is_quick = release.schema.cells <= FEW_CELLS and all(part.grouped is None for part in release.record.measurements)
    if tables is False or (tables is None and not is_quick):
        return
    # What was measured is safe by now: should estimating fail, or be cut short, nothing is lost.
    try:
        save_record(release.record, path, other_readings(release))
    except VeilcubeError:
        if tables:
            raise


def other_readings(release: Exporting) -> OtherReadings:
    """Return the estimates of a release, for other programs."""
    schema = release.schema
    short = [name for name in schema.names if schema[name].size <= MOST_ROWS_OF_A_TABLE]
    found: dict[tuple[str, ...], Answers] = {(name,): release.marginal(name) for name in short}
    estimates: dict[str, Floats] = {}
    beside: dict[str, Any] = {}
    if schema.cells <= MOST_CELLS:
        cells = release.marginal(*schema.names)
        if schema.cells <= FEW_CELLS:
            found[schema.names] = cells
        estimates = {name: getattr(cells, name) for name in ("value", "low", "high", "stddev")}
        beside = {
            "labels": {attribute.name: axis_values(attribute) for attribute in schema},
            **Facts.of(release.record, _CONFIDENCE, cells.estimator, ()).words,
        }
    texts = dict(zip(_entry_names(list(found)), (_as_csv(release, *one) for one in found.items()), strict=True))
    return OtherReadings(estimates, schema.names, beside, texts)


def _as_csv(release: Exporting, names: tuple[str, ...], answers: Answers) -> bytes:
    text = BytesIO()
    facts = Facts.of(release.record, answers.confidence, answers.estimator, ())
    write_tables(text, ".csv", [CountTable(release.schema, names, answers)], release.schema, facts)
    return text.getvalue()


def _entry_names(tables: Sequence[tuple[str, ...]]) -> list[str]:
    """Return the name of each table's entry: its attributes in plain letters, no two alike on any file system."""
    found: list[str] = []
    for names in tables:
        plain = "cells" if len(names) > 1 else re.sub("[^A-Za-z0-9_-]", "_", names[0])[:_LONGEST_NAME]
        found.append(next(name for name in _variants(plain) if name.lower() not in {one.lower() for one in found}))
    return [f"tables/{name}.csv" for name in found]


def _variants(name: str) -> Iterator[str]:
    yield name
    number = 2
    while True:
        yield f"{name}~{number}"
        number += 1
