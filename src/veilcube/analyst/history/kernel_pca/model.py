"""What kernel PCA learned from a history: answers to any linear query, with what the history cannot tell."""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from math import sqrt

import numpy as np

from veilcube.analyst.history.base import (
    AlphaSearch,
    Conditioning,
    ProductKernel,
    Spectrum,
    Whitening,
    read_alpha,
)
from veilcube.analyst.history.kernel_pca.density import CellDensity, places_of_cells
from veilcube.errors import QueryError
from veilcube.laws import laplace_sum_deviations, widest_deviations
from veilcube.query import Answer, Answers, AnswersWorkloads, LinearQueries, Workload, read_confidence
from veilcube.record import History
from veilcube.schema import Schema
from veilcube.system import Floats, read_whole

# By how many average cells an answer may be off for what is hidden within the queries of the past.
CELLS_UNKNOWN = 2.0
# By which part of an attribute's average slice, in units of how unlike cells are and up to a whole one.
SLICES_UNKNOWN = 0.5
# A cell may hold so many times what the cell of an average row holds. No count exceeds that of a past query which has
# it; the least of many has so many times the noise of one.
FULLEST_CELL, LEAST_OF_MANY = 3.0, 1.5
# What an alpha so many times as large would change by more than so many standard deviations is bias.
FURTHER, FAR = 10.0, 2.0
_QUERIES_AT_ONCE = 1024
# The share of a query's length that its mean must have for the query to say something of the total.
SAYS_NOTHING = 1e-9


@dataclass(frozen=True, eq=False)
class Eigenqueries:
    """Combinations of past queries that are orthonormal and whose estimates are uncorrelated, by ascending variance.

    ``values`` are their least-squares answers, ``stddev`` the noise in these, ``weights`` how much of each is believed,
    and ``coefficients[i]`` the combination of past answers that is eigenquery i.
    """

    values: Floats
    stddev: Floats
    weights: Floats
    coefficients: Floats


@dataclass(frozen=True, eq=False)
class Learned:
    """What a fit prepares before it decomposes: all in terms of the past queries."""

    history: History
    kernel: ProductKernel
    whitening: Whitening
    conditioning: Conditioning
    inside: Floats  # the past queries' coordinates in the directions that are known exactly
    means: Floats
    privacy: str

    @property
    def everything(self) -> Floats:
        """The universal query's coordinates in the directions that are known exactly."""
        found: Floats = self.conditioning.coordinates(self.means[np.newaxis, :], np.ones(1))[0]
        return found


@dataclass(frozen=True, eq=False)
class _Projection:
    """Queries as a model sees them: the part of their answers that is known, and the rest along the eigenvectors."""

    known: Floats
    means: Floats
    along: Floats
    norms: Floats
    slices: Floats
    products: Floats  # with the past queries
    inside: Floats  # coordinates in the directions that are known exactly

    @property
    def weight(self) -> Floats:
        """How much a cell counts in each query: 1 for those that count."""
        norms, means = np.maximum(self.norms, 0.0), np.maximum(np.abs(self.means), np.finfo(np.float64).tiny)
        with np.errstate(over="ignore"):
            return np.asarray(np.minimum(norms / means, 1.0 + np.sqrt(norms)))


class KernelPCAModel(AnswersWorkloads):
    """What kernel PCA learned from a history: answers any linear query over its schema."""

    def __init__(self, parts: Learned, spectrum: Spectrum, alpha: float, search: AlphaSearch | None) -> None:
        self._parts, self._spectrum, self._alpha, self._search = parts, spectrum, alpha, search
        self._prior_scale = self._read_prior_scale()

    @property
    def schema(self) -> Schema:
        """The public description of the table that the history is about."""
        return self._parts.history.schema

    @property
    def privacy(self) -> str:
        """The promises under which the past answers were given; learning from them costs nothing more."""
        return self._parts.privacy

    @property
    def alpha(self) -> float:
        """How far from the prior the answers may lead."""
        return self._alpha

    @property
    def search(self) -> AlphaSearch | None:
        """The alphas that were tried and their predicted errors; None where alpha was given."""
        return self._search

    @property
    def prior_scale(self) -> float:
        """How far the data may lie from the prior, in units of alpha: the bias of answers is predicted from it."""
        return self._prior_scale

    @property
    def total(self) -> Answer:
        """The number of rows: as it was given, or as the history tells it."""
        return self.answer(LinearQueries.everything(self.schema))[0]

    def __repr__(self) -> str:
        return f"KernelPCAModel({len(self._parts.history):,} answers, alpha={self._alpha:.4g})"

    def answer(self, workload: Workload | LinearQueries, confidence: float = 0.95) -> Answers:
        """Estimate the answers to past or new queries, thousands at once, with their standard deviations.

        The standard deviation holds the noise and the bias that is predicted: the prior scale times the distance from
        the query to the one that the history really answers. Intervals are those of a normal law, wider where a single
        past answer brings most of the noise, since Laplace noise has heavier tails. What the history does not determine
        may be a full cell among empty ones: intervals reach above the answer as far as cells are full.
        """
        confidence = read_confidence(confidence)
        queries = self._checked(workload)
        pieces = [queries[start : start + _QUERIES_AT_ONCE] for start in range(0, len(queries), _QUERIES_AT_ONCE)]
        reach = LEAST_OF_MANY * widest_deviations(confidence)
        found = [self._estimate(piece, reach) for piece in pieces] or [(np.empty(0),) * 5]
        value, stddev, tailed, full, ceiling = (np.concatenate(part) for part in zip(*found, strict=True))
        width = stddev * laplace_sum_deviations(tailed, confidence)
        high = np.minimum(value + np.maximum(width, full), ceiling)
        return Answers(value, value - width, high, stddev, confidence, self._parts.privacy)

    def with_alpha(self, alpha: float) -> "KernelPCAModel":
        """Return what the same decomposition gives for another alpha; the total stays known, shrunk or free."""
        return KernelPCAModel(self._parts, self._spectrum, read_alpha(alpha), None)

    def values_for(self, workload: Workload | LinearQueries, alphas: Sequence[float]) -> Floats:
        """Return the bare answers for several alphas, (alphas, queries): to see what alpha does."""
        if isinstance(alphas, str) or not isinstance(alphas, Sequence | np.ndarray):
            raise QueryError("the alphas are a list of numbers from 0 to infinity; put a single one into a list")
        queries, tried = self._checked(workload), [read_alpha(alpha) for alpha in alphas]
        found = np.empty((len(tried), len(queries)))
        for start in range(0, len(queries), _QUERIES_AT_ONCE):
            part = self._project(queries[start : start + _QUERIES_AT_ONCE])
            for row, alpha in enumerate(tried):
                weights = self._spectrum.weights(part.along, part.means, alpha)
                found[row, start : start + len(part.known)] = part.known + weights @ self._spectrum.answers
        return found

    def _checked(self, workload: Workload | LinearQueries) -> LinearQueries:
        queries = LinearQueries.of(workload)
        if queries.schema != self.schema:
            raise QueryError("the queries are for another schema than the history; build them with the same schema")
        return queries

    def _project(self, queries: LinearQueries) -> "_Projection":
        parts = self._parts
        means = parts.kernel.means(queries)
        products = parts.kernel.between(queries, parts.history.queries)
        inside, along = self._coordinates(products, means)
        return _Projection(
            known=inside @ parts.conditioning.answers,
            means=means - inside @ parts.everything,
            along=along,
            norms=parts.kernel.norms(queries) - np.square(inside).sum(axis=1),
            slices=parts.kernel.slices(queries),
            products=products,
            inside=inside,
        )

    def _coordinates(self, products: Floats, means: Floats) -> tuple[Floats, Floats]:
        """Return where queries lie: along what is known exactly, and along the eigenvectors of the rest."""
        inside = self._parts.conditioning.coordinates(products, means)
        noisy = self._parts.whitening.noisy
        rest = noisy.apply(products.T).T - inside @ noisy.apply(self._parts.inside).T
        return inside, rest @ self._spectrum.vectors

    def _ceiling(self, queries: LinearQueries, part: "_Projection", reach: float) -> Floats:
        """Return the least that a past query with all cells of a query counts, noise included; else infinity.

        One that counts has all of another if their inner product is the mean of the other.
        """
        history, of_past, means = self._parts.history, self._parts.means, self._parts.kernel.means(queries)
        counts = np.abs(self._norms_of_past - of_past) <= SAYS_NOTHING * of_past
        has_all = (part.products >= (1 - SAYS_NOTHING) * means[:, np.newaxis]) & counts
        has_all[np.abs(self._parts.kernel.norms(queries) - means) > SAYS_NOTHING * means] = False
        most = np.maximum(history.values, 0.0) + reach * np.sqrt(history.variances)
        return np.asarray(np.where(has_all, most, np.inf).min(axis=1, initial=np.inf))

    @cached_property
    def _norms_of_past(self) -> Floats:
        return self._parts.kernel.norms(self._parts.history.queries)

    def _estimate(self, queries: LinearQueries, reach: float) -> tuple[Floats, Floats, Floats, Floats, Floats]:
        """Return values, standard deviations, how far single noises make these (Σv⁴ over the square), and two bounds.

        The bounds are how far above its value a full cell brings a query, and what it counts at most.
        ``reach`` is the number of standard deviations that a past answer may be too low by.
        """
        part, spectrum = self._project(queries), self._spectrum
        weights = spectrum.weights(part.along, part.means, self._alpha)
        noise, distance, fourth = spectrum.errors_of(weights, part.along, part.norms)
        # What is left of a query that is known exactly is rounding.
        distance = np.where(distance > np.finfo(np.float64).eps * 64 * (1 + part.norms), distance, 0.0)
        open_to_rows = np.maximum(distance, self._where_full(queries, part, weights, distance))
        variance = noise + self._prior_scale**2 * open_to_rows + self._hidden(part, distance)
        variance += self._shrunk_away(part, weights)
        tailed = fourth / np.maximum(np.square(variance), np.finfo(np.float64).tiny)
        value = part.known + weights @ spectrum.answers
        ceiling = np.maximum(self._ceiling(queries, part, reach), value + reach * np.sqrt(noise))
        return value, np.sqrt(variance), tailed, self._full_cell(part, distance), ceiling

    def _where_full(self, queries: LinearQueries, part: "_Projection", weights: Floats, distance: Floats) -> Floats:
        """Return the squared distances with full cells counting for more; nothing where cells are too many."""
        if self._density is None:
            return np.zeros_like(distance)
        found = self._density.distances(queries, np.hstack([part.inside, weights]))
        return np.where(distance > 0, found, 0.0)

    @cached_property
    def _density(self) -> CellDensity | None:
        """How full the cells are by this model; None where they are too many to write out."""
        past = self._parts.history.queries
        places = places_of_cells(past)
        if places is None:
            return None
        prior = np.ones(len(places))
        for axis, shares in enumerate(self._parts.kernel.prior):
            prior *= shares.values[places[:, axis]]
        inside, along = self._coordinates(past.evaluate(places) * prior[:, np.newaxis], prior)
        means = prior - inside @ self._parts.everything
        weights = self._spectrum.weights(along, means, self._alpha)
        counts = inside @ self._parts.conditioning.answers + weights @ self._spectrum.answers
        return CellDensity.of(places, prior, np.hstack([inside, along]), counts)

    def _shrunk_away(self, part: "_Projection", weights: Floats) -> Floats:
        """Return the square of what a larger alpha would change, where that is more than its noise explains: slopes."""
        further = self._spectrum.weights(part.along, part.means, FURTHER * self._alpha) - weights
        moved, noise = np.square(further @ self._spectrum.answers), np.square(further).sum(axis=1)
        return np.where(moved > FAR**2 * noise, moved, 0.0)

    def _hidden(self, part: "_Projection", distance: Floats) -> Floats:
        """Return the variance of what no past answer shows: whether rows fill every cell alike or every other one.

        A query that differs from what the history answers by a cell or more may be off by CELLS_UNKNOWN average cells.
        Rows may be heaped along one attribute alone, so the same holds of its slices.
        """
        off: Floats = np.square(CELLS_UNKNOWN / self._cells * part.weight) * np.minimum(self._cells * distance, 1.0)
        unlike = min(SLICES_UNKNOWN * self._unlike, 1.0)
        for slices in part.slices:
            length = part.weight * slices
            is_open = np.divide(np.minimum(distance, length), length, out=np.zeros_like(length), where=length > 0)
            off += np.square(unlike * slices) * is_open
        return off * self._rows**2

    def _full_cell(self, part: "_Projection", distance: Floats) -> Floats:
        """Return how far above its answer a query may lie if it has a full cell among empty ones.

        An average row shares its cell with m(1 + c²) rows, m the mean of cells and c their coefficient of variation.
        """
        fullest = min(FULLEST_CELL * self._rows / self._cells * (1 + self._unlike**2), self._rows)
        cells = np.maximum(self._cells * part.norms / np.maximum(np.square(part.weight), SAYS_NOTHING), 1.0)
        return np.asarray(fullest * part.weight / np.sqrt(cells) * np.minimum(self._cells * distance, 1.0))

    @cached_property
    def _cells(self) -> float:
        return float(np.prod(np.array(self.schema.shape, dtype=np.float64)))

    @cached_property
    def _unlike(self) -> float:
        """How unlike their neighbours cells are: the coefficient of variation of what they hold, as far as told."""
        scale = min(self._spectrum.finest.largest_scale, self._prior_scale) if self._spectrum.answers.size else 0.0
        return (scale or self._prior_scale) * sqrt(self._cells) / self._rows if self._rows > 0 else 0.0

    @cached_property
    def _rows(self) -> float:
        """The number of rows as the history tells it."""
        part = self._project(LinearQueries.everything(self.schema))
        weights = self._spectrum.weights(part.along, part.means, self._alpha)
        return max(float((part.known + weights @ self._spectrum.answers)[0]), 0.0)

    def _read_prior_scale(self) -> float:
        if self._spectrum.answers.size:
            return self._spectrum.largest_scale
        # Exact answers alone: how far each lies from the prior, in units of its own length.
        history, known = self._parts.history, self._parts.conditioning
        total = float(self._parts.everything @ known.answers)
        lengths = np.maximum(self._parts.kernel.norms(history.queries) - np.square(self._parts.means), 0.0)
        told = lengths > np.finfo(np.float64).eps * 64
        far = np.square(history.values - total * self._parts.means)[told] / lengths[told]
        return float(np.sqrt(far.mean())) if far.size else 0.0

    def eigenqueries(self, first: int = 10) -> Eigenqueries:
        """Return the eigenqueries of least variance, for inspection."""
        first, spectrum = read_whole(first, "the number of eigenqueries", 0), self._spectrum
        order = np.argsort(-spectrum.values, kind="stable")
        kept = order[spectrum.values[order] > spectrum.rounding][:first]
        roots = np.sqrt(spectrum.values[kept])
        whitened = spectrum.vectors[:, kept].T / roots[:, np.newaxis]
        coefficients = whitened @ self._parts.whitening.noisy.dense(len(self._parts.history))
        believed = spectrum.filter(self._alpha)[kept] * spectrum.values[kept]
        return Eigenqueries(spectrum.answers[kept] / roots, 1.0 / roots, believed, coefficients)
