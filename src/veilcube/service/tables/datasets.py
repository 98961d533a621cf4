"""Datasets: a table on the server's side under a name, with its schema, whose presence it hides, and a budget."""

import json
import sqlite3
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from functools import cached_property

from veilcube.curator import Ledger
from veilcube.errors import VeilcubeError
from veilcube.privacy import PrivacyUnit
from veilcube.schema import Schema
from veilcube.service.base import ConflictError, NotFoundError, read_name
from veilcube.service.store import Database
from veilcube.service.tables.sources import Place

_COLUMNS = "name, source, within, schema, person, max_rows, neighbours, created, made_by"


@dataclass(frozen=True, eq=False)
class Dataset:
    """What is known of a dataset; nothing of it is private, but where the table lies stays with curators."""

    name: str
    place: Place
    schema_name: str
    described: Mapping[str, object]
    person: str | None
    max_rows: int | None
    neighbours: str
    created: str
    made_by: str

    @cached_property
    def schema(self) -> Schema:
        """The public description of the table, as it was when the dataset was registered."""
        return Schema.from_dict(self.described)

    @cached_property
    def unit(self) -> PrivacyUnit:
        """Whose presence is hidden."""
        return PrivacyUnit.read(self.person, self.max_rows)


class Datasets:
    """The datasets of a service; one that was registered stays what it is."""

    def __init__(self, database: Database) -> None:
        self._database = database

    def all(self) -> list[Dataset]:
        """Return every dataset, by name."""
        return [_read(row) for row in self._database.rows(f"SELECT {_COLUMNS} FROM datasets ORDER BY name")]

    def find(self, name: str) -> Dataset:
        """Return a dataset."""
        row = self._database.row(f"SELECT {_COLUMNS} FROM datasets WHERE name = ?", (read_name(name, "a dataset"),))
        if row is None:
            raise NotFoundError(f"there is no dataset called '{name}'")
        return _read(row)

    def require_free(self, name: str) -> None:
        """Refuse a name that a dataset has."""
        if self._database.row("SELECT name FROM datasets WHERE name = ?", (read_name(name, "a dataset"),)):
            raise ConflictError(f"there is a dataset called '{name}' already; choose another name")

    def add(self, dataset: Dataset) -> None:
        """Keep a dataset, for good."""
        told = json.dumps({"name": dataset.schema_name, "described": dataset.described}, allow_nan=False)
        row = (dataset.name, str(dataset.place), dataset.place.table, told, dataset.person, dataset.max_rows)
        try:
            with self._database.writing() as connection:
                connection.execute(
                    f"INSERT INTO datasets ({_COLUMNS}) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)",
                    (*row, dataset.neighbours, dataset.created, dataset.made_by),
                )
        except sqlite3.IntegrityError:
            raise ConflictError(f"there is a dataset called '{dataset.name}' already; choose another name") from None


def open_budget(ledger: Ledger, dataset: Dataset, epsilon: object, rho: object) -> None:
    """Give a dataset its budget, or take the one that the ledger has for it."""
    if epsilon is None and rho is None:
        try:
            ledger.budget(dataset.name)
        except VeilcubeError:
            raise ConflictError(
                f"the ledger has no budget for '{dataset.name}'; give it one, as epsilon or as rho"
            ) from None
        return
    budget = {"epsilon": epsilon, "rho": rho}
    ledger.create(dataset.name, **budget, neighbours=dataset.neighbours, person=dataset.unit.column)  # type: ignore[arg-type]


def written_at(now: datetime) -> str:
    """Return a moment as the service writes it."""
    return now.isoformat(timespec="seconds")


def _read(row: Mapping[str, object]) -> Dataset:
    told = json.loads(str(row["schema"]))
    place = Place.parse(str(row["source"]), row["within"])  # type: ignore[arg-type]
    rest = [row[name] for name in ("person", "max_rows", "neighbours", "created", "made_by")]
    return Dataset(str(row["name"]), place, told["name"], told["described"], *rest)  # type: ignore[arg-type]
