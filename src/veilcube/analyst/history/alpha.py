"""Choosing alpha from the history itself: exact leave-one-out, or cross-validation in k groups as published.

Both estimate the mean squared error of answers to queries like the past ones: the mean squared difference from answers
that were left out, less the mean variance of these (Theorem 4). The data are not touched, so nothing is spent.
"""

import warnings
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from veilcube.analyst.history.spectrum import Spectrum
from veilcube.errors import QueryError
from veilcube.system.arguments import read_real, show

Floats = NDArray[np.float64]

# The groups of a cross-validation are drawn with a fixed seed: the same history gives the same answers.
_SEED = 20120326
# Squared errors that fall by more than this share of the noise in the last step say that a larger alpha does better.
_STILL_FALLING = 0.01


@dataclass(frozen=True, eq=False)
class AlphaSearch:
    """The alphas that were tried, and the root mean squared error that the history foretells for each."""

    alphas: Floats
    errors: Floats
    best: float


def read_alpha(alpha: object, words: str = "") -> float:
    """Return an alpha that is given as a number; ``words`` are those that may stand in its place."""
    try:
        number = read_real(alpha, "alpha", infinite=True)
    except QueryError:
        number = -1.0
    if number < 0:
        allowed = f"{words}, or a number from 0 to infinity" if words else "a number from 0 to infinity here"
        raise QueryError(f"alpha is {allowed}, not {show(alpha)}")
    return number


def leave_one_out(spectrum: Spectrum, scales: Floats) -> AlphaSearch:
    """Try every alpha of the grid on each answer, estimated from all others; ``scales`` undo the whitening.

    Where the best is the last one and errors still fall there, the whole grid is tried.
    """
    alphas = spectrum.grid()
    errors = spectrum.leave_one_out(alphas)
    if _is_cut_off(_squared(errors, scales), scales):
        alphas = spectrum.grid(whole=True)
        errors = spectrum.leave_one_out(alphas)
    return _search(alphas, errors, scales)


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
    squared = _squared(errors, scales)
    if _is_cut_off(squared, scales):
        warnings.warn(
            "the best alpha is the largest that was tried, so answers may be shrunk too much towards the prior; "
            "compare alpha='likelihood' or a larger number",
            stacklevel=5,
        )
    return AlphaSearch(alphas, np.sqrt(np.maximum(squared, 0.0)), float(alphas[np.argmin(squared)]))


def _squared(errors: Floats, scales: Floats) -> Floats:
    """Return the mean squared error of each alpha's answers, in the units of answers."""
    return np.asarray(np.square(scales) @ (np.square(errors) - 1.0) / scales.size)


def _is_cut_off(squared: Floats, scales: Floats) -> bool:
    falling = squared[-2] - squared[-1] > _STILL_FALLING * np.square(scales).mean()
    return bool(falling and np.argmin(squared) == squared.size - 1)
