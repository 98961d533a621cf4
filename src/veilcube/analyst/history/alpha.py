"""Choosing alpha from the history itself: exact leave-one-out, or cross-validation in k groups as published.

Both estimate the mean squared error of answers to queries like the past ones: the mean squared difference from answers
that were left out, less the mean variance of these (Theorem 4). The data are not touched, so nothing is spent.
"""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from veilcube.analyst.history.spectrum import Spectrum

Floats = NDArray[np.float64]

# The groups of a cross-validation are drawn with a fixed seed: the same history gives the same answers.
_SEED = 20120326


@dataclass(frozen=True, eq=False)
class AlphaSearch:
    """The alphas that were tried, and the root mean squared error that the history foretells for each."""

    alphas: Floats
    errors: Floats
    best: float


def leave_one_out(spectrum: Spectrum, scales: Floats) -> AlphaSearch:
    """Try every alpha of the grid on each answer, estimated from all others; ``scales`` undo the whitening."""
    alphas = spectrum.grid()
    return _search(alphas, spectrum.leave_one_out(alphas), scales)


def cross_validate(
    alphas: Floats, kernel: Floats, answers: Floats, drift: Floats | None, scales: Floats, folds: int
) -> AlphaSearch:
    """Try the alphas on each of ``folds`` groups of answers, estimated from the other groups."""
    groups = np.arange(answers.size) % folds
    np.random.default_rng(_SEED).shuffle(groups)
    errors = np.empty((answers.size, alphas.size))
    for group in range(folds):
        test, train = groups == group, groups != group
        lines = kernel[np.ix_(test, train)]
        spectrum = Spectrum.of(kernel[np.ix_(train, train)], answers[train], None if drift is None else drift[train])
        along = lines @ spectrum.vectors
        means = np.zeros(len(lines)) if drift is None else drift[test]
        for column, alpha in enumerate(alphas.tolist()):
            errors[test, column] = answers[test] - spectrum.weights(along, means, alpha) @ spectrum.answers
    return _search(alphas, errors, scales)


def _search(alphas: Floats, errors: Floats, scales: Floats) -> AlphaSearch:
    squared = np.square(scales) @ (np.square(errors) - 1.0) / scales.size
    return AlphaSearch(alphas, np.sqrt(np.maximum(squared, 0.0)), float(alphas[np.argmin(squared)]))
