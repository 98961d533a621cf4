"""The privacy unit: whose presence a release hides, one row or one person with all of their rows."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal

from veilcube.errors import PrivacyError
from veilcube.system.arguments import read_choice, read_text, read_whole

MOST_ROWS = 10**9


@dataclass(frozen=True)
class PrivacyUnit:
    """A row, or a person of whom at most ``max_rows`` rows were counted."""

    kind: Literal["row", "person"] = "row"
    column: str | None = None
    max_rows: int = 1

    def __post_init__(self) -> None:
        read_choice(self.kind, "the privacy unit", ("row", "person"), PrivacyError)
        object.__setattr__(self, "max_rows", read_whole(self.max_rows, "max_rows", 1, MOST_ROWS, PrivacyError))
        if self.column is not None:
            read_text(self.column, "person, the column that names the person,", PrivacyError)
        if (self.kind == "person") != (self.column is not None) or (self.kind == "row" and self.max_rows != 1):
            raise PrivacyError(
                "a person unit needs the column that names the person and max_rows; a row unit has neither"
            )

    @classmethod
    def row(cls) -> "PrivacyUnit":
        """Hide the presence of any one row."""
        return cls()

    @classmethod
    def person(cls, column: str, max_rows: int) -> "PrivacyUnit":
        """Hide the presence of any one person, of whom at most ``max_rows`` rows are counted."""
        return cls("person", column, max_rows)

    @classmethod
    def read(cls, person: str | None, max_rows: int | None) -> "PrivacyUnit":
        """Return the unit that the arguments ``person`` and ``max_rows`` describe."""
        if person is None and max_rows is None:
            return cls.row()
        if person is None or max_rows is None:
            raise PrivacyError("person and max_rows go together: name the column and how many rows of a person to keep")
        return cls.person(person, max_rows)

    @property
    def _rows(self) -> str:
        return "1 row" if self.max_rows == 1 else f"{self.max_rows} rows"

    @property
    def words(self) -> str:
        """The unit as a noun phrase."""
        if self.kind == "row":
            return "one row"
        return f"one person ('{self.column}', at most {self._rows} of each)"

    @property
    def counted(self) -> str | None:
        """What readers of a count must know about the rows in it; None if every row counts."""
        if self.kind == "row":
            return None
        return (
            f"Counts are of at most {self._rows} per person; further rows are not counted, "
            "and intervals do not include them."
        )

    @property
    def identity(self) -> str:
        """What a ledger compares: two charges on one budget must protect the same kind of unit."""
        return "row" if self.kind == "row" else f"person:{self.column}"

    def to_dict(self) -> dict[str, object]:
        """Return the plain data it is rebuilt from."""
        return {"kind": self.kind, "column": self.column, "max_rows": self.max_rows}

    @classmethod
    def from_dict(cls, data: Mapping[str, object]) -> "PrivacyUnit":
        """Rebuild from ``to_dict``."""
        if not isinstance(data, Mapping) or not {"kind", "column", "max_rows"} <= set(data):
            raise PrivacyError("a privacy unit is a mapping with kind, column and max_rows, as to_dict writes it")
        return cls(data["kind"], data["column"], data["max_rows"])  # type: ignore[arg-type]
