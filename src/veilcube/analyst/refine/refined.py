"""Refined answers: answers with names, the facts that they obey, and how far the facts narrowed them."""

from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from veilcube.analyst.refine.facts import Fact, FactSystem
from veilcube.errors import QueryError
from veilcube.query import Answer, Answers

Floats = NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class Unrefined:
    """What refined answers were made from: values, a factor of their covariance, their promise, and every fact."""

    value: Floats
    factor: Floats
    is_noise_known: bool
    privacy: str
    system: FactSystem


@dataclass(frozen=True, eq=False, kw_only=True)
class Refined(Answers):
    """Answers that obey known facts, by name (``refined["A"]``) or by position, as arrays or as a table.

    ``covariance`` and ``stddev`` are exact for equalities; inequalities move ``value`` only, so these two stay those of
    the answers before them, and the intervals too, less what the facts rule out. Where no covariance was known they and
    the intervals are NaN, but ``variance_ratio`` (refined over unrefined variance of each answer) is right. ``facts``
    are the ones that said something new, ``redundant`` those that followed from the others. Refined again they start
    from the answers they were made from, ``unrefined``, and keep every fact.
    """

    names: tuple[str, ...]
    covariance: Floats = field(repr=False)
    variance_ratio: Floats = field(repr=False)
    facts: tuple[Fact, ...] = ()
    redundant: tuple[Fact, ...] = ()
    unrefined: Unrefined | None = field(default=None, repr=False)

    def __post_init__(self) -> None:
        super().__post_init__()
        for array in (self.covariance, self.variance_ratio):
            array.setflags(write=False)

    def __getitem__(self, index: int | str | tuple[int, ...]) -> Answer:
        if not isinstance(index, str):
            return super().__getitem__(index)
        if index not in self.names:
            raise QueryError(f"there is no answer named '{index}'; use one of {', '.join(self.names[:10])}")
        return super().__getitem__(self.names.index(index))
