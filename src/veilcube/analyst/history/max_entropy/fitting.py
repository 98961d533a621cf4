"""Maximum entropy on history: the distribution that says least beyond the noisy answers (section 4 of the paper).

    minimise  KL(p || p0) + Σ_i β_i |π_i - p[f_i]|,    β_i = α n / b_i

A small alpha trusts the prior p0, a large one the answers. The solution is p0 with the log-weights Σ_i w_i f_i, where w
solves a box-constrained dual. Small universes are solved exactly; others with Gibbs chains, in time and memory that do
not depend on the number of cells.
"""

import warnings
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from math import prod

import numpy as np

from veilcube.analyst.history.base import (
    Combinations,
    Conditioning,
    HistorySource,
    Prior,
    ProductKernel,
    Shares,
    promises_of_prior,
    read_alpha,
    read_history,
    read_prior,
)
from veilcube.analyst.history.kernel_pca import KernelPCA, KernelPCAModel
from veilcube.analyst.history.max_entropy.dual import DualProblem, box
from veilcube.analyst.history.max_entropy.error import learn_errors
from veilcube.analyst.history.max_entropy.exact import (
    MOST_EXACT_CELLS,
    all_chances,
    choose_alpha_exactly,
    fit_exactly,
    log_prior,
    tables_of,
)
from veilcube.analyst.history.max_entropy.gibbs_fit import choose_alpha, descend_stochastically, fit_chains
from veilcube.analyst.history.max_entropy.model import Convergence, MaxEntropyModel
from veilcube.analyst.history.max_entropy.segments import Segments
from veilcube.analyst.history.max_entropy.tables import group_queries
from veilcube.analyst.history.max_entropy.universe import (
    ExactUniverse,
    SampledUniverse,
    Total,
    Universe,
    estimate_total,
)
from veilcube.errors import QueryError
from veilcube.privacy import join_promises
from veilcube.record import History
from veilcube.system import Floats, read_choice, read_progress, read_real, read_whole

Progress = Callable[[float | None], None]

ENGINES = ("auto", "exact", "gibbs", "sgd")
# Universes of more cells are merged into segments that the history tells apart.
MOST_CELLS_ONE_BY_ONE = MOST_EXACT_CELLS
# Misfit of answers that can be met, in units of their noise, beyond which the fit is said not to have converged.
_CONVERGED = 0.5
# As for answers: what is far beyond any table would leave floating point.
LARGEST_TOTAL = 1e60
# Beyond this number exact answers are not compared with each other before the fit, nor all of them by kernel PCA
# after it: that takes the cube of it.
_MOST_COMPARED = 2000


@dataclass(frozen=True)
class MaxEntropy:
    """Settings of the estimator; ``fit`` gives a model that answers and makes rows.

    ``alpha`` is a number from 0 to infinity, or "auto": the one of least risk, estimated from the noisy answers.
    ``prior`` is uniform if it is None; else see ``read_prior``. ``engine`` is "exact" (every cell, at most 262,144),
    "gibbs" (chains), "sgd" (the published descent, for reproductions: ``steps`` of size ``rate``), or "auto".
    """

    alpha: str | float = "auto"
    prior: Prior = field(default=None, repr=False)
    engine: str = "auto"
    seed: int = 0
    steps: int = 1_000_000
    rate: float = 1e-4

    def __post_init__(self) -> None:
        if not (isinstance(self.alpha, str) and self.alpha == "auto"):
            object.__setattr__(self, "alpha", read_alpha(self.alpha, '"auto"'))
        read_choice(self.engine, "the engine", ENGINES)
        read_whole(self.seed, "the seed", 0)
        read_whole(self.steps, "the number of steps of the published descent", 1)
        if read_real(self.rate, "the rate of the published descent") <= 0:
            raise QueryError("the rate of the published descent must be above 0")

    def fit(
        self, history: HistorySource, total: float | None = None, progress: Progress | None = None
    ) -> MaxEntropyModel:
        """Learn from history: a ``History``, a release, a ledger's history, or a list of these.

        ``total`` is the number of rows, if it is known; else it is estimated, and answers carry its variance.
        ``progress`` is called with the share of the work that is done.
        """
        learned, advance = read_history(history), read_progress(progress) or (lambda _: None)
        if learned.covariance is not None:
            warnings.warn(
                "maximum entropy takes the noise of different answers as independent; "
                "the covariances of this history are not used, KernelPCA would use them",
                stacklevel=2,
            )
        prior = read_prior(learned.schema, self.prior)
        # Few cells are taken one by one; of many those are merged that no past query tells apart.
        merged = Segments.of(learned.queries, prior) if learned.schema.cells > MOST_CELLS_ONE_BY_ONE else None
        groups = group_queries(learned.queries if merged is None else merged.merged(learned.queries))
        rows = _read_total(total) or estimate_total(groups, learned.values, learned.variances)
        noise = np.sqrt(learned.variances) / rows.value
        _refuse_contradictions(learned, prior, total)
        privacy = join_promises([*learned.promises, *promises_of_prior(self.prior, history)])
        shape = learned.schema.shape if merged is None else merged.shape
        shares, laws = learned.values / rows.value, _laws(prior, merged)
        problem = DualProblem(groups, shape, shares, noise, box(np.inf, noise), laws)
        engine = self._engine(shape)
        if engine == "exact":
            model = self._fit_exactly(learned, problem, rows, merged, advance)
        else:
            model = self._fit_chains(learned, problem, rows, merged, engine, advance)
        return replace(model, privacy=privacy, _beside=self._beside(learned, problem, rows))

    def _beside(self, history: History, problem: DualProblem, rows: Total) -> KernelPCAModel | None:
        """Return what kernel PCA makes of past queries that are not the cells of tables; None where they all are.

        How cells within such queries differ cannot be read off their misfit: noise that is met says nothing of it.
        """
        if all(group.is_of_cells for group in problem.groups) or len(history) > _MOST_COMPARED:
            return None
        known = rows.value if rows.variance == 0 else None
        return KernelPCA("likelihood", self.prior).fit(history, known)

    def _engine(self, shape: tuple[int, ...]) -> str:
        if self.engine == "exact" and prod(shape) > MOST_EXACT_CELLS:
            raise QueryError(
                f'engine="exact" is for at most {MOST_EXACT_CELLS:,} cells, and {prod(shape):,} are told apart; '
                'use engine="gibbs"'
            )
        if self.engine != "auto":
            return self.engine
        return "exact" if prod(shape) <= MOST_EXACT_CELLS else "gibbs"

    def _fit_exactly(
        self, history: History, problem: DualProblem, rows: Total, merged: Segments | None, progress: Progress
    ) -> MaxEntropyModel:
        start = np.zeros(len(history))
        if self.alpha == "auto":
            alpha, start = choose_alpha_exactly(problem, progress)
        else:
            alpha = float(self.alpha)
        boxed = problem.with_alpha(alpha)
        weights, rounds = fit_exactly(boxed, start, progress)
        chances, _ = all_chances(boxed, log_prior(boxed.prior), weights)
        tables = tables_of(boxed, chances)
        fitted = _Fitted("exact", weights, tables, ExactUniverse(chances, self.seed), rounds, None)
        return _model(history, boxed, rows, alpha, fitted, merged)

    def _fit_chains(
        self,
        history: History,
        problem: DualProblem,
        rows: Total,
        merged: Segments | None,
        engine: str,
        progress: Progress,
    ) -> MaxEntropyModel:
        start, done = np.zeros(len(history)), 0.0
        if self.alpha == "auto":
            alpha, start = choose_alpha(
                problem, self.seed, lambda share: progress(None if share is None else share / 3)
            )
            done = 1 / 3
        else:
            alpha = float(self.alpha)
        boxed = problem.with_alpha(alpha)

        def rest(share: float | None) -> None:
            progress(None if share is None else done + (1 - done) * share)

        if engine == "sgd":
            weights = descend_stochastically(boxed, int(self.steps), float(self.rate), self.seed, rest)
            fit = fit_chains(boxed, weights, self.seed, rest, moving=False)
        else:
            fit = fit_chains(boxed, start, self.seed, rest)
        universe = SampledUniverse(fit.chains, fit.packed, fit.tables)
        rounds = int(self.steps) if engine == "sgd" else fit.sweeps
        fitted = _Fitted(
            engine, fit.weights, fit.tables, universe, rounds, None if engine == "sgd" else universe.chains
        )
        return _model(history, boxed, rows, alpha, fitted, merged)


@dataclass(frozen=True, eq=False)
class _Fitted:
    """What an engine found."""

    engine: str
    weights: Floats
    tables: list[Floats]
    universe: Universe
    rounds: int
    chains: int | None


def _laws(prior: tuple[Shares, ...], merged: Segments | None) -> tuple[Floats, ...]:
    if merged is None:
        return tuple(part.values for part in prior)
    return tuple(merged.masses(axis) for axis in range(len(prior)))


def _model(
    history: History, problem: DualProblem, rows: Total, alpha: float, fitted: _Fitted, merged: Segments | None
) -> MaxEntropyModel:
    expected = problem.expectations(fitted.tables)
    held = problem.held(fitted.weights, expected)
    gaps = (problem.shares - expected) / np.where(problem.noise > 0, problem.noise, 1e-4)
    misfit = float(np.sqrt(np.mean(np.square(gaps[~held])))) if not held.all() else 0.0
    converged = misfit < _CONVERGED
    report = Convergence(fitted.engine, alpha, fitted.rounds, fitted.chains, misfit, float(held.mean()), converged)
    exact = history.variances == 0
    if (np.abs(gaps[exact]) > 1).any():
        warnings.warn(
            "no distribution meets all exact answers of the history: some count would have to be below 0; "
            "give them the variance they have, or remove the wrong ones",
            stacklevel=4,
        )
    # Answers that should be met and are not tell how much further than their noise the model is off.
    doubt = 1.0 if converged else 1.0 + misfit**2
    errors = learn_errors(problem, fitted.tables, fitted.weights, rows.value, doubt, merged)
    return MaxEntropyModel(
        history.schema, fitted.weights, report, history.privacy, fitted.universe, errors, rows, _segments=merged
    )


def _refuse_contradictions(history: History, prior: tuple[Shares, ...], total: float | None) -> None:
    """Refuse exact answers that no table can have, whatever its signs, as kernel PCA does."""
    exact = history[history.variances == 0] if (history.variances == 0).any() else None
    if exact is not None and len(exact) <= _MOST_COMPARED:
        kernel = ProductKernel(prior)
        products, means = kernel.between(exact.queries, exact.queries), kernel.means(exact.queries)
        Conditioning.of(Combinations(np.arange(len(exact))), products, means, exact.values, total)


def _read_total(total: float | None) -> Total | None:
    if total is None:
        return None
    rows = read_real(total, "the total")
    if not 0 < rows <= LARGEST_TOTAL:
        raise QueryError(
            "the total is the number of rows of the table, above 0 and at most 1e60; leave it out if it is not known"
        )
    return Total(rows, 0.0)
