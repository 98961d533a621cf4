"""Kernel PCA on history: better answers to past queries and answers to new ones, at no cost in privacy.

The estimator of section 3 of the history paper in its stable form, kernel ridge: with K the inner products of the past
queries under the prior, k those of a new query with them, and Σ the noise's covariance,

    answer = k' (K + Σ/α²)^-1 a,

where alpha says how far from the prior the data may lie: 0 trusts the prior alone, infinity the answers alone. What is
known exactly, such as the total, is imposed (``conditioning``).
"""

from dataclasses import dataclass, field

import numpy as np

from veilcube.analyst.history.base import (
    Conditioning,
    HistorySource,
    Prior,
    ProductKernel,
    Spectrum,
    Whitening,
    cross_validate,
    leave_one_out,
    promises_of_prior,
    read_alpha,
    read_history,
    read_prior,
)
from veilcube.analyst.history.kernel_pca.model import SAYS_NOTHING, KernelPCAModel, Learned
from veilcube.errors import CapacityError, QueryError
from veilcube.privacy import join_promises
from veilcube.system import Floats, available_memory, format_bytes, read_real

# The kernel, its eigenvectors, their squares and the decomposition's own room: matrices of so many numbers a side.
_MATRICES = 5
# The share of the total that exact answers may leave open and still count as telling all of it.
_KNOWN = 1e-12
# Squares of larger totals would leave floating point, as those of larger answers would.
LARGEST_TOTAL = 1e60


@dataclass(frozen=True)
class KernelPCA:
    """Settings of the estimator; ``fit`` gives a model that answers.

    ``alpha`` is "loo" (exact leave-one-out), "cv" (cross-validation in ``folds`` groups; with fewer than two answers a
    group it is leave-one-out), "likelihood" (the most likely one: steadier where answers are few), or a number from 0
    to infinity. ``prior`` is uniform if it is None; else see ``read_prior``.
    """

    alpha: str | float = "loo"
    prior: Prior = field(default=None, repr=False)
    folds: int = 5

    def __post_init__(self) -> None:
        if not (isinstance(self.alpha, str) and self.alpha in ("loo", "cv", "likelihood")):
            object.__setattr__(self, "alpha", read_alpha(self.alpha, '"loo", "cv", "likelihood"'))
        if isinstance(self.folds, bool) or not isinstance(self.folds, int) or self.folds < 2:
            raise QueryError("cross-validation needs a whole number of folds, at least 2")

    def fit(self, history: HistorySource, total: float | None = None) -> KernelPCAModel:
        """Learn from history: a ``History``, a release, a ledger's history, or a list of these.

        ``total`` is the number of rows, if it is known. If it is not, an alpha that is chosen from the history leaves
        the total free: it is estimated with its variance. A fixed alpha then means the estimator as published, which
        shrinks the total like everything else.
        """
        learned = read_history(history)
        _require_memory(len(learned))
        known = _read_total(total)
        kernel = ProductKernel(read_prior(learned.schema, self.prior))
        products, means = kernel.between(learned.queries, learned.queries), kernel.means(learned.queries)
        whitening = Whitening.of(learned)
        conditioning = Conditioning.of(whitening.exact, products, means, learned.values, known)
        inside = conditioning.coordinates(products, means)
        privacy = join_promises([*learned.promises, *promises_of_prior(self.prior, history)])
        parts = Learned(learned, kernel, whitening, conditioning, inside, means, privacy)
        return self._decompose(parts, products, is_free=known is None and isinstance(self.alpha, str))

    def _decompose(self, parts: Learned, products: Floats, *, is_free: bool) -> KernelPCAModel:
        noisy = parts.whitening.noisy
        covered = noisy.apply(parts.inside)
        answers = noisy.apply(parts.history.values) - covered @ parts.conditioning.answers
        whitened = noisy.apply(noisy.apply(products).T)
        del products
        drift = _free_drift(parts, covered, np.diagonal(whitened)) if is_free else None
        whitened -= covered @ covered.T
        scales = parts.whitening.scales
        is_in_groups = self.alpha == "cv" and answers.size >= 2 * self.folds
        # The decomposition works in the kernel's own memory, which only cross-validation needs afterwards.
        spectrum = Spectrum.of(whitened.copy() if is_in_groups else whitened, answers, drift)
        if not isinstance(self.alpha, str):
            return KernelPCAModel(parts, spectrum, float(self.alpha), None)
        if self.alpha == "likelihood" and answers.size:
            return KernelPCAModel(parts, spectrum, spectrum.likely_scale, None)
        if answers.size < 2:
            return KernelPCAModel(parts, spectrum, float("inf"), None)
        search = (
            cross_validate(spectrum.grid(), whitened, answers, drift, scales, self.folds)
            if is_in_groups
            else leave_one_out(spectrum, scales)
        )
        return KernelPCAModel(parts, spectrum, search.best, search)


def _free_drift(parts: Learned, covered: Floats, squares: Floats) -> Floats | None:
    """Return what is not known of the total in the noisy combinations; None where exact answers tell all of it.

    ``squares`` are the squared lengths of the combinations, and ``covered`` their coordinates in what is known.
    """
    everything = parts.everything
    told = float(everything @ everything)
    if 1 - told <= _KNOWN:
        return None
    drift = np.asarray(parts.whitening.noisy.apply(parts.means) - covered @ everything)
    if (np.abs(drift) > SAYS_NOTHING * np.sqrt(squares)).any():
        return drift
    if told <= SAYS_NOTHING**2:
        raise QueryError("the history says nothing of the number of rows of the table; give it as total=...")
    return None


def _read_total(total: float | None) -> float | None:
    if total is None:
        return None
    if not 0 <= (rows := read_real(total, "the total")) <= LARGEST_TOTAL:
        raise QueryError(
            "the total is the number of rows of the table, from 0 to 1e60; leave it out if it is not known"
        )
    return rows


def _require_memory(answers: int) -> None:
    needed, free = _MATRICES * 8 * answers**2, available_memory()
    if needed > free:
        raise CapacityError(
            f"kernel PCA on {answers:,} answers needs {format_bytes(needed)}, more than the {format_bytes(free)} that "
            "are free; use MaxEntropy, or a part of the history such as history[:5000]"
        )
