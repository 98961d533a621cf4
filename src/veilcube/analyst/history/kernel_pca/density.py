"""Where the cells are full: what a history leaves open strays further there than where hardly anybody is.

One scale for all cells takes an empty stretch to be as uncertain as the fullest one. Random ranges seldom reach the
first and the last cells, and where many rows lie there (incomes of 0) every prefix errs by them. So the scale is also
dealt out to the cells in proportion to how full the model takes them to be, with the same mean square over all cells.
"""

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from veilcube.query import LinearQueries
from veilcube.system import Floats, Integers

# Cells are written out up to this many of them, and up to this many products of cells with terms of past queries.
MOST_CELLS, MOST_PRODUCTS = 2**14, 2**22


def places_of_cells(past: LinearQueries) -> Integers | None:
    """Return the places of all cells, (cells, attributes); None where they are too many to write out."""
    shape = past.schema.shape
    cells = float(np.prod(np.array(shape, dtype=np.float64)))
    if cells > MOST_CELLS or cells * past.owner.size > MOST_PRODUCTS:
        return None
    return np.indices(shape).reshape(len(shape), -1).T.astype(np.int64)


@dataclass(frozen=True, eq=False)
class CellDensity:
    """All cells: what the prior gives them, their coordinates in what was answered, and how full they are.

    ``answered`` (cells, coordinates) are the cells' inner products with the directions in which the history answers,
    and ``fullness`` the square of how many rows they hold beside the prior, with a mean of 1 under it.
    """

    places: Integers
    prior: Floats
    answered: Floats
    fullness: Floats

    @classmethod
    def of(cls, places: Integers, prior: Floats, answered: Floats, counts: Floats) -> "CellDensity":
        """Return what estimated counts of the cells say."""
        density = np.divide(np.maximum(counts, 0.0), prior, out=np.zeros_like(prior), where=prior > 0)
        mean_square = float(prior @ np.square(density))
        is_told = 0 < mean_square < np.inf
        fullness = np.square(density) / mean_square if is_told else np.ones_like(prior)
        return cls(places, prior, answered, fullness)

    def distances(self, queries: LinearQueries, answered: Floats) -> Floats:
        """Return |q - q'|² of queries q and those q' that are really answered, cells weighed by how full they are.

        ``answered`` are the coordinates of q'. Queries of too many terms to be written out get 0.
        """
        weights = np.divide(self.fullness, self.prior, out=np.zeros_like(self.prior), where=self.prior > 0)
        found = np.zeros(len(queries))
        for piece in self._pieces(queries):
            some = queries[piece]
            with_cells = some.evaluate(self.places).T * self.prior
            found[piece] = np.square(with_cells - answered[piece] @ self.answered.T) @ weights
        return found

    def _pieces(self, queries: LinearQueries) -> Iterator[Integers]:
        """Yield queries that can be written out together."""
        terms = np.bincount(queries.owner, minlength=len(queries))
        most = MOST_PRODUCTS // max(self.prior.size, 1)
        chosen = np.flatnonzero(terms <= most)
        number = (np.cumsum(np.maximum(terms[chosen], 1)) - 1) // max(most // 2, 1)
        for part in np.unique(number):
            yield chosen[number == part]
