"""The prior of the history estimators: a product of one distribution for each attribute, none of them with a zero."""

import warnings
from collections.abc import Mapping, Sequence
from typing import TypeAlias, cast

import numpy as np
from numpy.typing import ArrayLike

from veilcube.analyst.history.base.shares import Shares
from veilcube.analyst.history.base.sources import HistorySource, read_history, told_sources
from veilcube.errors import QueryError
from veilcube.query import Answers
from veilcube.record import History
from veilcube.schema import Schema
from veilcube.system import Floats, require_memory

Prior: TypeAlias = Mapping[str, "ArrayLike | Answers"] | Answers | HistorySource | None

# What a prior with zeros gives up to the uniform distribution: a cell of weight 0 could never be learned about.
SHARE_OF_UNIFORM = 0.01
# A share this much below an even one is lost in rounding, and answers about it would be too.
_AS_GOOD_AS_ZERO = 1e-6
# Exact answers count as having this share of the largest variance: exact for a prior, and noisy ones are not lost.
_NEARLY_EXACT = 1e-8

_GIVE_IT = "give the prior as weights, or leave it out"


def read_prior(schema: Schema, prior: Prior) -> tuple[Shares, ...]:
    """Return a distribution for each attribute; one that the prior does not mention has the uniform distribution.

    A prior is a mapping from attributes to weights or to the ``Answers`` of a marginal, such ``Answers`` alone, or
    history (also a release) that measured single attributes. Noisy counts are held to be at least the standard
    deviation of their noise, since less cannot be told from it.
    """
    weights: dict[int, Floats] = {}
    if isinstance(prior, Mapping):
        for axis, given in zip(schema.axes(prior), prior.values(), strict=True):
            weights[axis] = _noisy_weights(given) if isinstance(given, Answers) else _plain_weights(given)
    elif isinstance(prior, Answers):
        if len(prior.axes) != 1:
            raise QueryError("a prior needs the marginal of one attribute; give a mapping from attributes to them")
        weights[schema.axis(next(iter(prior.axes)))] = _noisy_weights(prior)
    elif prior is not None:
        weights = _measured_weights(schema, _read_parts(prior))
    return tuple(
        Shares(size, _distribution(schema.names[axis], weights[axis], size)) if axis in weights else Shares(size)
        for axis, size in enumerate(schema.shape)
    )


def promises_of_prior(prior: Prior, history: HistorySource) -> tuple[str, ...]:
    """Return the privacy promises that a prior adds to those of the history; what is in both is counted once."""
    if prior is None:
        return ()
    if isinstance(prior, Answers):
        return (prior.privacy,) if prior.privacy else ()
    if isinstance(prior, Mapping):
        given = [part.privacy for part in prior.values() if isinstance(part, Answers)]
        return tuple(promise for promise in given if promise)
    used = {id(source) for source in told_sources(history)}
    others = [source for source in told_sources(prior) if id(source) not in used]
    return read_history(cast("list[HistorySource]", others)).promises if others else ()


def _read_parts(prior: HistorySource) -> History:
    if isinstance(prior, Sequence) and any(isinstance(part, Answers) for part in prior):
        raise QueryError("give several marginals as a mapping from attributes to their answers")
    return read_history(prior)


def _plain_weights(given: ArrayLike) -> Floats:
    try:
        return np.array(given, dtype=np.float64)
    except (TypeError, ValueError) as problem:
        raise QueryError("the prior of an attribute is a list of weights, one for each of its cells") from problem


def _noisy_weights(answers: Answers) -> Floats:
    return np.maximum(answers.value, answers.stddev)


def _measured_weights(schema: Schema, history: History) -> dict[int, Floats]:
    """Return least-squares counts of the cells of every attribute that the history measured alone."""
    if history.schema != schema:
        raise QueryError("the prior was measured for another schema than the history; use one schema for both")
    single = np.bincount(history.queries.owner, minlength=len(history)) == 1
    supports = history.queries.supports()
    found: dict[int, Floats] = {}
    for axis, size in enumerate(schema.shape):
        terms = [term for term, support in enumerate(supports) if support == (axis,)]
        chosen = np.array([query for query in history.queries.owner[terms].tolist() if single[query]], dtype=np.int64)
        part = history.queries[chosen].parts[axis]
        if part.terms.size < size:
            continue
        require_memory(24 * part.terms.size * size, f"a prior from measurements of '{schema.names[axis]}'", _GIVE_IT)
        rows, variances = part.rows, history.variances[chosen]
        spread = np.sqrt(np.maximum(variances, _NEARLY_EXACT * (float(variances.max()) or 1.0)))
        inverse = np.linalg.pinv(rows / spread[:, np.newaxis])
        if np.linalg.matrix_rank(rows) == size:
            found[axis] = np.maximum(inverse @ (history.values[chosen] / spread), np.linalg.norm(inverse, axis=1))
    if not found:
        raise QueryError("the prior measured no attribute alone; measure one-attribute marginals, or leave it out")
    return found


def _distribution(name: str, weights: Floats, size: int) -> Floats:
    if weights.shape != (size,):
        raise QueryError(f"the prior of '{name}' needs {size} weights, one for each cell, not {weights.shape}")
    if not np.isfinite(weights).all() or (weights < 0).any() or not weights.any():
        raise QueryError(f"the prior of '{name}' needs finite weights of 0 or more that are not all 0")
    # The largest weight becomes 1 first: the sum of finite weights need not be finite.
    shares = weights / weights.max()
    shares = shares / shares.sum()
    if shares.min() * size < _AS_GOOD_AS_ZERO:
        warnings.warn(
            f"the prior of '{name}' has zeros or next to nothing, so nothing could be learned there; "
            f"{SHARE_OF_UNIFORM:.0%} of it was spread evenly",
            stacklevel=4,
        )
        shares = (1 - SHARE_OF_UNIFORM) * shares + SHARE_OF_UNIFORM / size
    return np.asarray(shares, dtype=np.float64)
