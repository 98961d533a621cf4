"""How far apart two columns can be in the L2 norm: the sensitivity that Gaussian noise is scaled to, squared.

A row that moves from one cell to another takes column a away and brings b, and |a - b|² = |a|² + |b|² - 2 <a, b>. For
a product of axes all three multiply over the axes, signs or not. So what matters of two cells of one axis is
``ColumnProducts``; the largest |a - b|² over all cells is exact, and a sum of whole numbers.
"""

from bisect import bisect_left, bisect_right
from collections.abc import Iterable, Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

# Kinds of pairs of cells that are compared one by one; a product with more of them gets a bound.
MOST_KINDS = 50_000
_LINES_AT_ONCE = 256


class ColumnProducts(NamedTuple):
    """The inner products of two columns a and b: a with itself, b with itself, a with b."""

    left: int
    right: int
    inner: int

    def times(self, other: "ColumnProducts") -> "ColumnProducts":
        """Return the inner products of the columns' Kronecker products with those of another axis."""
        return ColumnProducts(self.left * other.left, self.right * other.right, self.inner * other.inner)

    @property
    def distance(self) -> int:
        """|a - b|²."""
        return self.left + self.right - 2 * self.inner


def farthest_products(pairs: Iterable[ColumnProducts], largest: int) -> tuple[ColumnProducts, ...]:
    """Return the pairs, both ways round, without those that another one is at least as far apart as in any product.

    Beside other axes with the products (p, q, g) a pair adds left p + right q - 2 inner g. With g >= 0 a pair of
    longer columns with a smaller inner product is farther. With g <= 0 no pair is farther than a cell of the
    ``largest`` norm with itself, whose three products are as large as any. So that one is kept, whatever the others.
    """
    both = {pair for a in pairs for pair in (a, ColumnProducts(a.right, a.left, a.inner))}
    kept = [ColumnProducts(largest, largest, largest)]
    # The longest left columns first: only pairs seen before can be farther than the next one. Of those, ``right`` and
    # ``inner`` list the ones that matter, both rising: the first with a right column as long has the least product.
    right: list[int] = []
    inner: list[int] = []
    for pair in sorted(both, key=lambda pair: (-pair.left, -pair.right, pair.inner)):
        place = bisect_left(right, pair.right)
        if place < len(right) and inner[place] <= pair.inner:
            continue
        first, last = bisect_left(inner, pair.inner), bisect_right(right, pair.right)
        right[first:last], inner[first:last] = [pair.right], [pair.inner]
        kept.append(pair)
    return tuple(kept)


def largest_squared_exchange(axes: Sequence[Sequence[ColumnProducts]]) -> int:
    """Return the largest |a - b|² over pairs of columns of a product; a bound of it if the kinds of pairs are too many.

    Each axis gives the pairs that ``farthest_products`` keeps. What they make together is thinned out the same way
    after each axis, since axes that follow cannot tell two axes from one.

    >>> haar_of_two = farthest_products([ColumnProducts(2, 2, 0)], 2)
    >>> largest_squared_exchange([haar_of_two]), largest_squared_exchange([haar_of_two, haar_of_two])
    (4, 8)
    """
    together: tuple[ColumnProducts, ...] = (ColumnProducts(1, 1, 1),)
    for pairs in axes:
        largest = max(pair.left for pair in together) * max(pair.left for pair in pairs)
        few = len(together) * len(pairs) <= MOST_KINDS
        ours, theirs = (together, pairs) if few else (_corner(together), _corner(pairs))
        together = farthest_products({one.times(other) for one in ours for other in theirs}, largest)
    return max(pair.distance for pair in together)


def _corner(pairs: Sequence[ColumnProducts]) -> tuple[ColumnProducts, ...]:
    """Return products that no pair is farther than, though perhaps no two columns have them, and those of one cell."""
    largest = max(pair.left for pair in pairs)
    return (
        ColumnProducts(largest, largest, min(pair.inner for pair in pairs)),
        ColumnProducts(largest, largest, largest),
    )


def products_of_columns(columns: NDArray[np.int64], alone: Sequence[int] | None = None) -> tuple[ColumnProducts, ...]:
    """Return the farthest pairs of columns that are written out, one a line; ``alone`` are squares each has besides.

    >>> products_of_columns(np.array([[1, 1], [1, -1]]))
    (ColumnProducts(left=2, right=2, inner=2), ColumnProducts(left=2, right=2, inner=0))
    """
    lines = _exactly_multipliable(columns)
    norms = [int(norm) for norm in (lines * lines).sum(axis=1)]
    norms = norms if alone is None else [own + norm for own, norm in zip(alone, norms, strict=True)]
    order = sorted(range(len(norms)), key=lambda cell: -norms[cell])
    found: set[ColumnProducts] = set()
    for start in range(0, len(norms), _LINES_AT_ONCE):
        products = lines[start : start + _LINES_AT_ONCE] @ lines[order].T
        own = np.arange(products.shape[0])
        products[own, np.argsort(order)[start + own]] = np.inf  # no pair of two cells
        # Along a line the right columns shorten, so a pair that is not below all before it is closer than one of them.
        least = np.minimum.accumulate(products, axis=1)
        is_new = np.ones(products.shape, dtype=np.bool_)
        is_new[:, 1:] = products[:, 1:] < least[:, :-1]
        for line, place in zip(*np.nonzero(is_new), strict=True):
            left, right = start + int(line), order[place]
            if left != right:
                found.add(ColumnProducts(norms[left], norms[right], int(products[line, place])))
    return farthest_products(found, max(norms))


def _exactly_multipliable(columns: NDArray[np.int64]) -> NDArray[Any]:
    """Return columns in a type whose sums of products are exact: floats up to 2^53, beyond them Python's numbers."""
    largest = int(np.abs(columns).max(initial=0))
    return columns.astype(np.float64 if largest**2 * columns.shape[1] < 2**53 else object)
