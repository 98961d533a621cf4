"""Tables whose labels are parities, and noisy releases of them."""

import numpy as np
import numpy.typing as npt

from support.seeded import SeededWords
from veilcube.curator.sampling import discrete_laplace

Integers = npt.NDArray[np.int64]

# The paper's experiment (8.2): d = 8, v = 0000011, 100,000 uniform rows.
PAPER = (0, 0, 0, 0, 0, 1, 1)


def parity_table(vector: tuple[int, ...], rows: int, seed: int, wrong: float = 0.0) -> Integers:
    """Uniform rows whose label is the parity, but wrong for a share of them."""
    generator = np.random.default_rng(seed)
    bits = generator.integers(0, 2, (rows, len(vector)))
    labels = (bits @ np.array(vector)) % 2 ^ (generator.random(rows) < wrong)
    cells = np.column_stack((bits, labels)) @ (1 << np.arange(len(vector) + 1)[::-1])
    return np.bincount(cells, minlength=2 ** (len(vector) + 1))


def released(exact: Integers, scale: int, seed: int) -> Integers:
    """Return a histogram with discrete Laplace noise."""
    return exact + discrete_laplace(scale, exact.size, source=SeededWords(seed))
