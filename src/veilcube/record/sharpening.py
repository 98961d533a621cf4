"""Sharpened values in a release: which earlier values they take the place of, and that they fit them.

A node that was measured may be measured again with ``sharpened-discrete-laplace`` noise. The earlier value is then the
later one plus noise that tells nothing more about the count (docs/proofs/sharpened-noise.md): it stays in the file,
since decisions were taken by it, but no estimate may use both as if they were independent.
"""

from collections.abc import Sequence
from dataclasses import replace
from fractions import Fraction

import numpy as np
from numpy.typing import NDArray

from veilcube.errors import ReleaseFileError
from veilcube.laws import Noise
from veilcube.privacy import LaplaceEvent
from veilcube.record.measurement import NoisyMeasurement
from veilcube.system import Integers

NONE = -1


def drop_superseded(measurements: Sequence[NoisyMeasurement]) -> tuple[NoisyMeasurement, ...]:
    """Return the measurements without the values that later ones took the place of; raises ReleaseFileError.

    A sharpened value must be of a node that was measured before, and last with the noise that it says it sharpened.
    """
    if all(part.noise.before is None for part in measurements):
        return tuple(measurements)
    kept = [np.ones(part.values.shape, dtype=bool) for part in measurements]
    holder: dict[int, Integers] = {}  # for each level, which measurement each of its nodes was last measured by
    for number, part in enumerate(measurements):
        operator = part.nodes
        if operator is None:
            if part.noise.before is not None:
                raise ReleaseFileError("sharpened noise belongs to nodes of a staged tree; remake the release")
            continue
        last = holder.setdefault(operator.level, np.full(operator.tree.nodes(operator.level), NONE))
        if part.noise.before is not None:
            _take_over(last[operator.chosen], operator.chosen, part.noise.before, measurements, kept)
        last[operator.chosen] = number
    return tuple(_only(part, which) for part, which in zip(measurements, kept, strict=True) if which.any())


def _take_over(
    before: Integers,
    nodes: Integers,
    scale: Fraction,
    measurements: Sequence[NoisyMeasurement],
    kept: list[NDArray[np.bool_]],
) -> None:
    order = np.argsort(before, kind="stable")
    numbers, starts = np.unique(before[order], return_index=True)
    for number, places in zip(numbers, np.split(order, starts[1:]), strict=True):
        earlier = measurements[number] if number != NONE else None
        if earlier is None or earlier.nodes is None or not _is_sharpenable(earlier.noise, scale):
            raise ReleaseFileError("sharpened values of the release do not fit those before them; remake the release")
        kept[number][np.searchsorted(earlier.nodes.chosen, nodes[places])] = False


def _is_sharpenable(noise: Noise, scale: Fraction) -> bool:
    """Whether noise is Laplace noise of this scale of its own: a Gaussian parameter is no scale, whatever its number.

    What is charged for a sharpened value is what was added to the rate before, so that rate must have been charged.
    """
    return noise.family == LaplaceEvent.family and not noise.is_joint and noise.parameter == scale


def _only(part: NoisyMeasurement, which: NDArray[np.bool_]) -> NoisyMeasurement:
    if which.all() or part.nodes is None:
        return part
    nodes = part.nodes.chosen[which]
    return NoisyMeasurement(replace(part.nodes, rows=nodes.size, nodes=nodes), part.values[which], part.noise)
