"""Weights of queries: how much each matters to whoever plans, as numbers and in the lines of a workload file."""

import re
from collections.abc import Sequence
from pathlib import Path

import numpy as np

from veilcube.errors import QueryError
from veilcube.system import Floats, read_path, read_text_file

# No condition begins with a number and a product: counts are of rows.
_WEIGHTED = re.compile(r"\s*([0-9]+(?:\.[0-9]*)?(?:[eE][-+]?[0-9]{1,3})?)\s*\*\s*(\S.*)", re.DOTALL)
_WANTED = "the weights of a workload are numbers above 0, one for each query, such as weights=[3, 1]"
# Beyond this ratio the lighter query might as well not be asked, and sums would lose it.
LARGEST_RATIO = 1e12


def read_weights(weights: object, queries: int) -> Floats | None:
    """Return the weights in a scale of mean 1; None if there are none, or all are alike.

    >>> read_weights([3, 1], 2).tolist(), read_weights([2, 2], 2)
    ([1.5, 0.5], None)
    """
    if weights is None:
        return None
    if isinstance(weights, str | bytes):
        raise QueryError(_WANTED)
    try:
        found = np.array(weights)
    except (TypeError, ValueError, OverflowError, RecursionError):
        raise QueryError(_WANTED) from None
    if found.dtype.kind not in "iuf" or found.shape != (queries,):
        raise QueryError(_WANTED)
    numbers = found.astype(np.float64)
    if not np.isfinite(numbers).all() or not (numbers > 0).all():
        raise QueryError(_WANTED)
    if not queries or (numbers == numbers[0]).all():
        return None
    scaled: Floats = numbers / numbers.max()
    if scaled.min() * LARGEST_RATIO < 1:
        raise QueryError(f"one weight of the workload is more than {LARGEST_RATIO:.0e} times another; leave that out")
    scaled = scaled / scaled.mean()
    scaled.setflags(write=False)
    return scaled


def read_weighted(text: str) -> tuple[float, str]:
    """Return the weight that a text begins with, 1 if it has none, and the rest.

    >>> read_weighted("3 * age >= 65"), read_weighted("SELECT COUNT(*)")
    ((3.0, 'age >= 65'), (1.0, 'SELECT COUNT(*)'))
    """
    found = _WEIGHTED.fullmatch(text)
    if found is None:
        return 1.0, text
    return float(found[1]), found[2]


def read_lines(path: object) -> tuple[list[str], list[float]]:
    """Return the queries of a workload file with their weights."""
    file = read_path(path, "the workload file", QueryError)
    try:
        text = read_text_file(Path(file))
    except (OSError, ValueError) as problem:
        raise QueryError(
            f"the workload file {file} cannot be read as text; name a file with a line of SQL for each query"
        ) from problem
    lines = [line.strip() for line in text.splitlines()]
    found = [read_weighted(line) for line in lines if line and not line.startswith("--")]
    if not found:
        raise QueryError(f"the workload file {file} holds no query; write a line of SQL for each")
    return [query for _, query in found], [weight for weight, _ in found]


def weights_of(texts: Sequence[str]) -> tuple[list[str], list[float]]:
    """Return texts without the weights that they begin with, and the weights.

    >>> weights_of(["2 * sex = 'Male'", "age < 20"])
    (["sex = 'Male'", 'age < 20'], [2.0, 1.0])
    """
    found = [read_weighted(text) for text in texts]
    return [query for _, query in found], [weight for weight, _ in found]
