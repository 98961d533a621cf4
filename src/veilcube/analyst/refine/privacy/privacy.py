"""What refining with facts costs: the loss of privacy of refined answers when the facts themselves come from the table.

Refined answers A X + D c with X = μ + Laplace noise have the mean A μ + D c. Between two neighbouring tables it shifts
by A (μ - μ') + D (c - c'), which is μ - μ' where the refinement is unbiased and the facts hold on both tables. Then
loss = min{ Σ|v_i|/scale_i : A_S v = shift_S } over the refined coordinates S, a linear program (``least_norm``). Where
no fact changes (c = c'), v = μ - μ' is allowed, so loss <= epsilon: refining is post-processing.

Proved in docs/proofs/refinement.md.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from numbers import Real

import numpy as np
from numpy.typing import ArrayLike, NDArray

from veilcube.analyst.refine.answers import LinearRefinement, best_refinement, read_factor, read_names, read_square
from veilcube.analyst.refine.facts import (
    Constraints,
    FactSource,
    FactSystem,
    RefinementPrivacy,
    explain,
    read_facts,
    read_numbers,
    read_release_facts,
)
from veilcube.analyst.refine.privacy.least_norm import greatest_least_norm, norms_of_each
from veilcube.analyst.refine.privacy.neighbours import differences_of_pairs, differences_of_query, read_query
from veilcube.analyst.refine.privacy.release_privacy import check_facts
from veilcube.analyst.release import Release
from veilcube.errors import PrivacyError, QueryError
from veilcube.privacy import Neighbours
from veilcube.system import Floats, read_kind

_CHANGED = 1e-10
_NOTHING = 1e-13
_EPSILON = float(np.finfo(np.float64).eps)


@dataclass(frozen=True, eq=False)
class _Study:
    """A refinement read for the check: A, its facts (none where only A is known), and how neighbours move it."""

    matrix: Floats
    system: FactSystem
    differences: Floats
    shifts: Floats
    changes: Floats  # (pairs, facts): change of each fact that comes from the table, exactly zero where it has none
    is_safe: NDArray[np.bool_]  # (pairs,): no fact changes
    obeys_facts: bool = False


def refinement_privacy(
    constraints: Constraints | None = None,
    *,
    A: ArrayLike | None = None,  # noqa: N803 - the paper's names, part of the public contract
    B: ArrayLike | None = None,  # noqa: N803
    D: ArrayLike | None = None,  # noqa: N803
    names: Sequence[str] | None = None,
    covariance: ArrayLike | None = None,
    pairs: ArrayLike | None = None,
    query: Mapping[str, ArrayLike] | ArrayLike | None = None,
    neighbours: str = "add-remove",
    scale: ArrayLike | None = None,
    epsilon: float | None = None,
    coordinates: Sequence[int | str] | None = None,
    data_dependent: bool | Sequence[bool] = True,
    release: Release | None = None,
) -> RefinementPrivacy:
    """Return the privacy loss of a linear refinement of answers with Laplace noise, and which facts make it too large.

    The refinement is the best one for facts (sentences over ``names``, or the columns of ``B``) under ``covariance``;
    or ``A`` alone, unbiased; or ``A``, ``D`` and ``B``. Neighbours are ``pairs`` of true answers (μ, μ'), or all
    histograms one record apart (``neighbours``) under ``query`` (a row per answer, a column per cell; a mapping names
    the answers); without either every answer is a cell. ``scale`` is the noise of each answer; ``epsilon``, given
    instead, stands for the noise that gives the unrefined answers this epsilon. ``coordinates`` (positions or names)
    are the refined answers looked at, by default all together. Facts count as read off the table, so that they follow
    it; ``data_dependent=False``, for all or one by one, or ``Fact(..., source="public")``, says that they do not.
    With ``release``, sentences are about that release and the loss is that of all its answers together; its noise may
    be Gaussian too. Of single answers with Gaussian noise no finite loss is known beyond post-processing.

    >>> check = refinement_privacy(B=[1, 1], pairs=[([1, 0], [0, 0])], epsilon=0.5, coordinates=[0])
    >>> round(check.loss, 9), check.explanation[0]
    (1.0, "the constraint 'q1 + q2 = c1' was published exactly: one record changes it")
    """
    if D is not None and A is None:
        raise QueryError("D says which share of each fact goes to each answer of A; give A too, or leave D out")
    if release is not None:
        read_kind(release, Release, "release is a veilcube.Release")
        others = (A, B, D, names, covariance, pairs, query, scale, epsilon, coordinates)
        if any(other is not None for other in others) or not isinstance(data_dependent, bool):
            raise QueryError("a release brings its own noise and neighbours; give it and the constraints alone")
        source: FactSource = "unstated" if data_dependent else "public"
        rows = read_release_facts(release.schema, constraints, None, None, source)
        return check_facts(release.record, rows)
    given_names, cells = read_query(query)
    size = _count_answers(A, B, pairs, cells, names)
    chosen_names = read_names(given_names if names is None else names, size)
    system = read_facts(chosen_names, constraints, B, None, needs_constants=False)
    differences = _read_differences(pairs, cells, Neighbours.read(neighbours), size)
    study = _study(A, D, system, covariance, differences, data_dependent)
    noise, budget = _read_noise(scale, epsilon, differences)
    return _judge(study, noise, budget, _read_coordinates(coordinates, chosen_names))


def _read_differences(pairs: ArrayLike | None, cells: Floats | None, neighbours: Neighbours, size: int) -> Floats:
    if pairs is not None:
        if cells is not None:
            raise QueryError("give either pairs of true answers or a query whose neighbours are all tried, not both")
        return differences_of_pairs(pairs, size)
    cells = np.eye(size) if cells is None else cells
    if len(cells) != size:
        raise QueryError(f"query must have one row per answer ({size}), not the shape {cells.shape}")
    return differences_of_query(cells, neighbours)


def _study(
    matrix: ArrayLike | None,
    shares: ArrayLike | None,
    system: FactSystem,
    covariance: ArrayLike | None,
    differences: Floats,
    data_dependent: bool | Sequence[bool],
) -> _Study:
    """Return how the mean of the refined answers shifts between neighbours: A (μ - μ') + D (c - c')."""
    if not system.is_equality.all():
        raise QueryError("the privacy of a refinement is known for equalities only; leave out '<=' and '>='")
    follows = _read_flags(data_dependent, system, matrix is not None)
    sizes = np.abs(differences) @ np.abs(system.weights).T
    changes = _without_rounding(differences @ system.weights.T, sizes, _EPSILON * (differences.shape[1] + 2))
    changes *= follows[: len(system)]
    if matrix is None:
        if not len(system):
            raise QueryError("there is no refinement to judge; give constraints, B, or a matrix A")
        refinement = best_refinement(system.weights.T, covariance)
    elif shares is not None:
        refinement = LinearRefinement(matrix, shares, system.weights.T)
    else:
        known = read_square(matrix)
        if follows.any() and not follows.all():
            raise QueryError("some of the facts do not follow the table, so A alone is not enough; give D as well")
        shifts = differences if follows.any() else differences @ known.T
        magnitudes = np.abs(differences) @ (np.eye(len(known)) + np.abs(known)).T
        is_safe = np.all(np.abs(shifts - differences @ known.T) <= _CHANGED * magnitudes, axis=1)
        return _Study(known, system, differences, shifts, changes, is_safe)
    shares_of_facts = np.asarray(refinement.D)
    # I - D B' leaves rounding where it should leave nothing; a move along it would be taken for a cheap one.
    before = _sizes_before_cancelling(shares_of_facts, system.weights, covariance)
    used = _without_rounding(np.array(refinement.A), before, _NOTHING)
    magnitudes = np.abs(differences) @ np.abs(used).T + np.abs(changes) @ np.abs(shares_of_facts).T
    shifts = _without_rounding(differences @ used.T + changes @ shares_of_facts.T, magnitudes, _NOTHING)
    return _Study(used, system, differences, shifts, changes, np.all(changes == 0, axis=1), matrix is None)


def _sizes_before_cancelling(shares: Floats, weights: Floats, covariance: ArrayLike | None) -> Floats:
    """Return the size of the numbers that each entry of I - D B' is the difference of, in its own units.

    The rounding of an entry of D is relative to the largest of its column, each in units of its answer's stddev.
    """
    size = len(shares)
    deviations = np.ones(size) if covariance is None else np.linalg.norm(read_factor(covariance, size), axis=1)
    largest = (np.abs(shares) / np.where(deviations > 0, deviations, 1.0)[:, np.newaxis]).max(axis=0, initial=0.0)
    return np.asarray(np.eye(size) + np.outer(deviations, largest @ np.abs(weights)))


def _without_rounding(found: Floats, magnitudes: Floats, rounding: float) -> Floats:
    """Return numbers, zero where they are within the rounding of the ones they were computed from, each by itself."""
    return np.asarray(np.where(np.abs(found) <= rounding * magnitudes, 0.0, found))


def _judge(study: _Study, noise: Floats, epsilon: float, coordinates: tuple[int, ...]) -> RefinementPrivacy:
    """Solve the programs: in units of the noise, moves u = v/scale under diag(scale)^-1 A diag(scale)."""
    # Answers in units of their own noise too: none is small beside another because of its unit.
    weighted, shifts = study.matrix * noise / noise[:, np.newaxis], study.shifts / noise
    # Where the facts stay, moving the noise by μ - μ' explains the shift.
    known = np.where(study.is_safe, (np.abs(study.differences) / noise).sum(axis=1), np.inf)
    chosen = list(coordinates)
    loss, at = greatest_least_norm(weighted[chosen], shifts[:, chosen], known)
    tells = _tells_a_fact(study, chosen)
    if tells.any():
        loss, at = np.inf, int(np.argmax(tells))
    is_post_processing = bool(study.is_safe.all())
    dangerous = tuple(dict.fromkeys(study.system.facts[index].sentence for index in _changing(study)))
    needed = noise * (max(loss / epsilon, 1.0) if epsilon > 0 else 1.0)
    return RefinementPrivacy(
        loss=loss,
        epsilon=epsilon,
        scale=noise,
        scale_needed=needed,
        loss_of_each=norms_of_each(weighted, shifts),
        coordinates=coordinates,
        worst=study.differences[at],
        is_post_processing=is_post_processing,
        dangerous=() if is_post_processing else dangerous,
        explanation=explain(is_post_processing, dangerous, loss, epsilon),
    )


def _tells_a_fact(study: _Study, chosen: Sequence[int]) -> NDArray[np.bool_]:
    """Return which pairs differ in a fact that the chosen answers obey on their own, so that they never coincide."""
    is_told = ~(np.delete(study.system.weights, chosen, axis=1) != 0).any(axis=1)
    return np.asarray(study.obeys_facts & (study.changes[:, is_told] != 0).any(axis=1))


def _changing(study: _Study) -> NDArray[np.intp]:
    return np.flatnonzero((study.changes != 0).any(axis=0))


def _count_answers(
    matrix: ArrayLike | None,
    facts: ArrayLike | None,
    pairs: ArrayLike | None,
    cells: Floats | None,
    names: Sequence[str] | None,
) -> int:
    for given, name in ((matrix, "A"), (facts, "B")):
        if given is not None:
            return len(np.atleast_1d(read_numbers(given, name)))
    if cells is not None:
        return len(cells)
    if names is not None:
        return len(names)
    if pairs is not None:
        return int(read_numbers(pairs, "pairs").shape[-1])
    raise QueryError("there is no refinement to judge; give constraints with names or a query, B, or a matrix A")


def _read_flags(data_dependent: bool | Sequence[bool], system: FactSystem, has_matrix: bool) -> NDArray[np.bool_]:
    """Return for each fact whether it follows the table; for a refinement without facts, one flag for all of them."""
    count = len(system) or int(has_matrix)
    try:
        flags = np.asarray(data_dependent)
    except (TypeError, ValueError, RecursionError):
        flags = np.zeros(0)
    if flags.dtype != np.bool_ or flags.shape not in ((), (count,)):
        raise QueryError(f"data_dependent must be True, False, or one of them for each of the {count} facts")
    follows = np.broadcast_to(flags, count).copy()
    for index, fact in enumerate(system.facts):
        follows[index] &= fact.source != "public"
    return follows


def _read_noise(scale: ArrayLike | None, epsilon: float | None, differences: Floats) -> tuple[Floats, float]:
    """Return the noise scale of each answer and the epsilon of the answers before refinement."""
    size = differences.shape[1]
    if epsilon is not None and (isinstance(epsilon, bool) or not isinstance(epsilon, Real) or not 0 < epsilon < np.inf):
        raise PrivacyError("epsilon must be a positive number; it is the privacy of the answers before refinement")
    if scale is None:
        if epsilon is None:
            raise PrivacyError(
                "the noise is not known; give its scale, or the epsilon of the answers before refinement"
            )
        sensitivity = float(np.abs(differences).sum(axis=1).max())
        return np.full(size, (sensitivity or 1.0) / float(epsilon)), float(epsilon)
    if epsilon is not None:
        raise PrivacyError("give the scale of the noise or the epsilon of the answers before refinement, not both")
    noise = read_numbers(scale, "scale")
    if noise.shape not in ((), (size,)) or (noise <= 0).any():
        raise PrivacyError(f"scale must be one positive number, or one for each of the {size} answers")
    noise = np.broadcast_to(noise, size).copy()
    return noise, float((np.abs(differences) / noise).sum(axis=1).max())


def _read_coordinates(coordinates: Sequence[int | str] | None, names: Sequence[str]) -> tuple[int, ...]:
    if coordinates is None:
        return tuple(range(len(names)))
    listed = isinstance(coordinates, Sequence | np.ndarray) and not isinstance(coordinates, str)
    if not listed or not len(coordinates):
        raise QueryError(
            "coordinates must be a list of refined answers, by position or name, with at least one of them"
        )
    positions = []
    for entry in coordinates:
        is_position = isinstance(entry, int | np.integer) and not isinstance(entry, bool)
        if is_position and 0 <= int(entry) < len(names):
            positions.append(int(entry))
        elif isinstance(entry, str) and entry in names:
            positions.append(list(names).index(entry))
        else:
            raise QueryError(f"there is no answer {entry!r}; coordinates are names or positions 0 to {len(names) - 1}")
    return tuple(dict.fromkeys(positions))
