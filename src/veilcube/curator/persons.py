"""How many rows each person has: exact, counted beside the rows that are kept, and silent about itself. PRIVATE."""

import numpy as np
import pyarrow as pa

from veilcube.privacy import Private
from veilcube.record import ExcessBins, RowBins
from veilcube.system import Integers


class PersonRows(Private):
    """How many persons have how many rows. PRIVATE: only mechanisms may ask what it holds."""

    def __init__(self) -> None:
        self._persons: dict[int, int] = {}

    def add(self, rows: pa.Array) -> None:
        """Take in a batch: for every person the number of her rows once, and zeros, which are nobody."""
        numbers, times = np.unique(rows.to_numpy(zero_copy_only=False), return_counts=True)
        for number, many in zip(numbers.tolist(), times.tolist(), strict=True):
            if number:
                self._persons[number] = self._persons.get(number, 0) + many

    def add_counted(self, numbers: Integers) -> None:
        """Take in pairs of a number of rows and how many persons have so many; zeros are nobody."""
        for number, many in numbers.tolist():
            if number:
                self._persons[number] = self._persons.get(number, 0) + many

    def measured_by(self, bins: RowBins | ExcessBins) -> Integers:
        """Return what the bins count: persons, or rows beyond a cap; only mechanisms may ask."""
        rows = np.array(list(self._persons.keys()), dtype=np.int64)
        persons = np.array(list(self._persons.values()), dtype=np.int64)
        if isinstance(bins, RowBins):
            found = np.zeros(len(bins.first), dtype=np.int64)
            np.add.at(found, np.searchsorted(bins.first, rows, side="right") - 1, persons)
            return found
        found = np.zeros(len(bins.sensitivities), dtype=np.int64)
        beyond = rows > bins.max_rows
        excess, persons = rows[beyond] - bins.max_rows, persons[beyond]
        place = np.searchsorted(bins.ends, excess, side="left")
        np.add.at(found, place, persons * np.where(place < len(bins.ends), excess, 1))
        return found
