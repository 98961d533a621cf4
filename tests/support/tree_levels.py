"""Levels of small trees of every shape, and a hierarchy with single children: what weights are searched for."""

import numpy as np

from veilcube.operators import hierarchy_levels, levels_of_fanouts
from veilcube.schema import Nominal

JOBS = Nominal("job", hierarchy={"A": ["a1", "a2", {"AA": ["a3", "a4"]}], "B": ["b"], "C": {"CC": ["c1", "c2"]}})


def levels(size: int, *fanouts: int) -> tuple[np.ndarray, ...]:
    return (*levels_of_fanouts(size, (1, *fanouts)), np.arange(size + 1))


TREES = {
    "binary": levels(16, 2, 2, 2),
    "of no even size": levels(23, 3, 4),
    "with runs of one cell in the middle": levels(7, 5),
    "total and cells": levels(6),
    "a hierarchy with single children": hierarchy_levels(JOBS.hierarchy, 9),
}
