"""Noisy answers as people have them (arrays, ``Answers``, mappings), and refined ones with the facts that they obey."""

import warnings
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import cast

import numpy as np
from numpy.typing import ArrayLike

from veilcube.analyst.refine.facts import Fact, FactSystem, FactTest, read_numbers
from veilcube.errors import CapacityError, QueryError
from veilcube.privacy import join_promises
from veilcube.query import Answer, Answers
from veilcube.system import Floats


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
    from the answers they were made from, ``unrefined``, and keep every fact. ``fact_test`` tells whether the facts fit
    the noise, None where the noise is not known.
    """

    names: tuple[str, ...]
    covariance: Floats = field(repr=False)
    variance_ratio: Floats = field(repr=False)
    facts: tuple[Fact, ...] = ()
    redundant: tuple[Fact, ...] = ()
    unrefined: Unrefined | None = field(default=None, repr=False)
    fact_test: FactTest | None = field(default=None, repr=False)

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


Values = ArrayLike | Answers | Iterable[Answer] | Mapping[str, "float | Answer"]

# Covariances are dense matrices here: 4,096 answers take 128 MB for each.
MOST_ANSWERS = 4096
_ASYMMETRIC = 1e-9
_NEGATIVE = 1e-9


@dataclass(frozen=True, eq=False)
class OwnIntervals:
    """The intervals that answers came with."""

    low: Floats
    high: Floats
    confidence: Floats


@dataclass(frozen=True, eq=False)
class NoisyAnswers:
    """Answers X with names, and L with L L' = S, the covariance of their noise (S = I where nobody knows it)."""

    names: tuple[str, ...]
    value: Floats
    factor: Floats
    is_noise_known: bool
    privacy: str
    own: OwnIntervals | None = None
    known: FactSystem | None = None  # facts that the answers were refined with before


def read_answers(values: Values, covariance: ArrayLike | None, names: Sequence[str] | None) -> NoisyAnswers:
    """Return the answers with their names and their noise: ``covariance``, else the standard deviations they carry."""
    if isinstance(values, Refined) and values.unrefined is not None:
        return _read_again(values, values.unrefined, covariance, names)
    if isinstance(values, Iterator):
        values = list(values)
    own_names, numbers, variances, privacy = _read_values(values)
    value = read_numbers(numbers, "values")
    if value.ndim != 1 or not value.size:
        raise QueryError(f"values must be a list of at least one number, not an array of the shape {value.shape}")
    if value.size > MOST_ANSWERS:
        raise CapacityError(
            f"at most {MOST_ANSWERS:,} answers can be refined together, not {value.size:,}; refine parts"
        )
    chosen = read_names(names if names is not None else own_names, value.size)
    if covariance is None:
        covariance = variances
        if variances is not None:
            _warn_of_shared_noise(values)
    factor = np.eye(value.size) if covariance is None else read_factor(covariance, value.size)
    return NoisyAnswers(chosen, value, factor, covariance is not None, privacy, _own_intervals(values))


def _read_again(
    values: Refined, before: Unrefined, covariance: ArrayLike | None, names: Sequence[str] | None
) -> NoisyAnswers:
    """Return the answers as they were before any fact moved them; a given covariance is about those that moved."""
    chosen = read_names(names if names is not None else values.names, values.value.size)
    if covariance is None:
        return NoisyAnswers(
            chosen, before.value, before.factor, before.is_noise_known, before.privacy, None, before.system
        )
    factor = read_factor(covariance, values.value.size)
    return NoisyAnswers(chosen, np.array(values.value), factor, True, before.privacy, None, before.system)


def _warn_of_shared_noise(values: Values) -> None:
    if isinstance(values, Answers):
        promises = [values.privacy] * values.value.size
    else:
        listed = _listed(values)
        promises = [entry.privacy for entry in listed if isinstance(entry, Answer)]
    if max(Counter(filter(None, promises)).values(), default=0) > 1:
        warnings.warn(
            "several answers make the same privacy promise, and their noises are taken as independent; if they come "
            "from one release, refine it as a whole, vc.refine(release, ...), or give their covariance",
            stacklevel=4,
        )


def _own_intervals(values: Values) -> OwnIntervals | None:
    if isinstance(values, Answers):
        confidence = np.full(values.value.size, values.confidence)
        return OwnIntervals(values.low.ravel(), values.high.ravel(), confidence)
    listed = _listed(values)
    if not all(isinstance(entry, Answer) for entry in listed):
        return None
    columns = ([getattr(entry, name) for entry in listed] for name in ("low", "high", "confidence"))
    return OwnIntervals(*(np.array(column, dtype=np.float64) for column in columns))


def _listed(values: Values) -> list[object]:
    if isinstance(values, np.ndarray):
        return [None]
    return list(values.values() if isinstance(values, Mapping) else cast("Iterable[object]", values))


def read_factor(covariance: ArrayLike, size: int) -> Floats:
    """Return L with L L' = S, for S given as one variance, a vector of variances, or a positive semidefinite matrix."""
    given = read_numbers(covariance, "covariance")
    if given.shape in ((), (size,)):
        if (given < 0).any():
            raise QueryError("covariance given as variances must not be negative; 0 means that an answer is exact")
        return np.diag(np.sqrt(np.broadcast_to(given, size)))
    if given.shape != (size, size):
        raise QueryError(
            f"covariance must be a vector of {size} variances or a {size} by {size} matrix, not the shape {given.shape}"
        )
    if np.abs(given - given.T).max() > _ASYMMETRIC * np.abs(given).max():
        raise QueryError("covariance must be a symmetric matrix; average it with its transpose if that is rounding")
    variances, directions = np.linalg.eigh((given + given.T) / 2)
    if variances[0] < -_NEGATIVE * max(variances[-1], 0.0) or variances[-1] < 0:
        raise QueryError("covariance is not positive semidefinite, so no noise can have it; check how it was computed")
    keeps = variances > 1e-14 * variances[-1]
    return np.asarray(directions[:, keeps] * np.sqrt(variances[keeps]))


def _read_values(values: Values) -> tuple[Sequence[str] | None, ArrayLike, ArrayLike | None, str]:
    """Return names, numbers, covariance and privacy statement, as far as the values carry them."""
    if isinstance(values, Answers):
        return _axis_names(values), values.value.ravel(), _variances(values.stddev.ravel()), values.privacy
    names: Sequence[str] | None = None
    if isinstance(values, Mapping):
        names, values = tuple(values), list(values.values())
    if isinstance(values, str) or not isinstance(values, Iterable):
        raise QueryError(
            "values must be numbers or answers, several of them: a list, an array, or a mapping from names"
        )
    entries = values if isinstance(values, np.ndarray) else list(values)
    noisy = [entry for entry in entries if isinstance(entry, Answer)]
    if not noisy:
        return names, entries, None, ""
    if len(noisy) < len(entries):
        raise QueryError(
            "some values are answers and some plain numbers; give all as answers, or numbers and covariance"
        )
    # Whether answers that were never charged come from one release cannot be seen, so each is counted.
    statements = join_promises([answer.privacy for answer in noisy], each="releases or answers, each with")
    deviations = np.array([answer.stddev for answer in noisy])
    return names, [answer.value for answer in noisy], _variances(deviations), statements


def _variances(deviations: Floats) -> Floats | None:
    """Return variances; None where an answer does not know its own, which only a given covariance can make up for."""
    return deviations**2 if np.isfinite(deviations).all() else None


def _axis_names(answers: Answers) -> Sequence[str] | None:
    if not answers.axes:
        return None
    columns = answers.columns()
    labels = [map(str, columns[axis]) for axis in answers.axes]
    return [", ".join(parts) for parts in zip(*labels, strict=True)]


def read_names(names: Sequence[str] | None, size: int) -> tuple[str, ...]:
    """Return one name per answer: the given ones, which must differ, or q1, q2, and so on."""
    if names is None:
        return tuple(f"q{index + 1}" for index in range(size))
    listed = isinstance(names, Sequence) and not isinstance(names, str)
    if not listed or not all(isinstance(name, str) and name for name in names):
        raise QueryError("names must be a list of texts, one for each answer")
    if len(names) != size:
        raise QueryError(f"there are {size} answers but {len(names)} names; give one name for each answer")
    if len(set(names)) != size:
        raise QueryError("two answers have the same name; give every answer a name of its own")
    return tuple(names)
