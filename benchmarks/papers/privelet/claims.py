"""The claims of the paper's section 8.1, each judged by a rule that is written down here."""

from collections.abc import Callable, Sequence
from math import sqrt

import numpy as np
from numpy.typing import NDArray

from benchmarks.papers.privelet.accuracy import (
    BASIC,
    PLUS,
    PLUS_AUTO,
    STAR,
    STAR_AUTO,
    STAR_SEPARATE,
    TREE,
    Experiment,
)
from benchmarks.papers.privelet.questions import quintiles
from benchmarks.papers.privelet.verdict import Claim, log_slope

# What the paper's words are taken to mean.
TWO_ORDERS = 100.0
LINEAR = (0.9, 1.1)
INSENSITIVE = 0.1
CONSIDERABLY_SMALLER = 0.8
COMPARABLE = (0.8, 1.25)
LARGE_COVERAGE, SMALL_SELECTIVITY, LEAST_SELECTIVITY = 0.01, 0.001, 1e-7
PRIVELET_RELATIVE, BASIC_RELATIVE = 0.25, 0.70
# An arm of Privelet+ with the one of Privelet* on the same release.
PAIRS = ((PLUS, STAR), (PLUS, STAR_SEPARATE), (PLUS_AUTO, STAR_AUTO))

Floats = NDArray[np.float64]


def judge_accuracy(experiments: Sequence[Experiment]) -> list[Claim]:
    """Return every claim for each census, epsilon and pair of arms that was measured."""
    found: list[Claim] = []
    for experiment in experiments:
        place = f"{experiment.census}, epsilon {experiment.epsilon:g}"
        found += _about_basic(experiment, place)
        for plus in dict.fromkeys(plus for plus, _ in PAIRS if plus in experiment.outcomes):
            found += _about_plus(experiment, f"{place}, {plus}", plus)
        for plus, star in PAIRS:
            if star in experiment.outcomes:
                found += _about_star(experiment, f"{place}, {star}", plus, star)
        found += _about_tree(experiment, place)
    return found


def _about_basic(experiment: Experiment, place: str) -> list[Claim]:
    middles = _means(experiment.coverage, experiment.coverage)
    absolute = log_slope(middles, _means(experiment.absolute(BASIC), experiment.coverage))
    square = log_slope(middles, _means(experiment.absolute(BASIC) ** 2, experiment.coverage))
    relative = _means(experiment.relative(BASIC), experiment.selectivity)
    above = sum(mean > BASIC_RELATIVE for mean in relative)
    return [
        Claim(
            f"{place}, {BASIC}",
            "the average absolute error of Basic increases linearly with coverage",
            f"as coverage^{absolute:.2f}; its square error as coverage^{square:.2f}",
            LINEAR[0] <= absolute <= LINEAR[1],
        ),
        Claim(
            f"{place}, {BASIC}",
            "Basic has more than 70% relative error in several quintiles of selectivity",
            f"in {above}; the largest is {max(relative):.0%}",
            above > 1,
        ),
    ]


def _about_plus(experiment: Experiment, place: str, plus: str) -> list[Claim]:
    coverage = experiment.coverage
    own, basic = (_means(experiment.absolute(arm), coverage) for arm in (plus, BASIC))
    slope = log_slope(_means(coverage, coverage), own)
    times = max(basic) / max(own)
    exactly = sqrt(max(_exact_squares(experiment, BASIC)) / max(_exact_squares(experiment, plus)))
    relative = max(_means(experiment.relative(plus), experiment.selectivity))
    worst = max(
        _worst_ratio(experiment, plus, BASIC, coverage > LARGE_COVERAGE, coverage),
        _worst_ratio(experiment, plus, BASIC, experiment.selectivity >= LEAST_SELECTIVITY, experiment.selectivity),
    )
    return [
        Claim(
            place,
            "the average absolute error of Privelet+ is insensitive to coverage",
            f"as coverage^{slope:.2f}; {max(own) / min(own):.1f} times between quintiles",
            abs(slope) <= INSENSITIVE,
        ),
        Claim(
            place,
            "its highest average error is two orders of magnitude below Basic's",
            f"{times:.1f} times below ({max(own):,.0f} and {max(basic):,.0f}); {exactly:.1f} by the exact formula",
            times >= TWO_ORDERS,
        ),
        Claim(
            place,
            "its relative error is at most 25% in all quintiles",
            f"{relative:.1%}",
            relative <= PRIVELET_RELATIVE,
        ),
        Claim(
            place,
            "its error is below Basic's where coverage is above 1% or selectivity at least 1e-7",
            f"{worst:.2f} times Basic's in the worst fifth of such queries",
            worst < 1,
        ),
    ]


def _about_star(experiment: Experiment, place: str, plus: str, star: str) -> list[Claim]:
    is_large, is_dense = experiment.coverage > LARGE_COVERAGE, experiment.selectivity > SMALL_SELECTIVITY
    absolute, relative = (_ratio_of(measure, star, plus) for measure in (experiment.absolute, experiment.relative))
    worst = max(_means(experiment.relative(star), experiment.selectivity))
    everything = np.ones(len(experiment.truth), dtype=np.bool_)
    return [
        Claim(
            place,
            "considerably smaller absolute error than Privelet+ where coverage is below 0.01",
            f"{absolute(~is_large):.2f} times its error",
            absolute(~is_large) <= CONSIDERABLY_SMALLER,
        ),
        Claim(
            place,
            "comparable absolute error where coverage is above 0.01",
            f"{absolute(is_large):.2f} times its error",
            COMPARABLE[0] <= absolute(is_large) <= COMPARABLE[1],
        ),
        Claim(
            place,
            "lower relative error than Privelet+ where selectivity is below 0.001",
            f"{relative(~is_dense):.2f} times its error",
            relative(~is_dense) < 1,
        ),
        Claim(
            place,
            "comparable relative error where selectivity is above 0.001",
            f"{relative(is_dense):.2f} times its error",
            COMPARABLE[0] <= relative(is_dense) <= COMPARABLE[1],
        ),
        Claim(place, "its relative error is at most 25% in all quintiles", f"{worst:.1%}", worst <= PRIVELET_RELATIVE),
        Claim(
            place,
            "Privelet* outperforms Privelet+",
            f"{absolute(everything):.2f} times its mean absolute, {relative(everything):.2f} its mean relative error, "
            f"{experiment.outcomes[star].rmse / experiment.outcomes[plus].rmse:.2f} its RMSE",
            absolute(everything) < 1 and relative(everything) < 1,
        ),
    ]


def _about_tree(experiment: Experiment, place: str) -> list[Claim]:
    """Our own claim, beside the paper's."""
    if TREE not in experiment.outcomes:
        return []
    rivals = {arm: outcome.rmse for arm, outcome in experiment.outcomes.items() if arm != TREE}
    best = min(rivals, key=rivals.__getitem__)
    ratio = experiment.outcomes[TREE].rmse / rivals[best]
    return [
        Claim(
            f"{place}, {TREE}",
            "(ours) the tree's error is below that of every arm of the paper",
            f"{ratio:.2f} times the RMSE of the best of them, {best}",
            ratio < 1,
        )
    ]


def _means(values: Floats, by: Floats) -> list[float]:
    """Return the means of values in the quintiles of something else."""
    return [float(values[group].mean()) for group in quintiles(by)]


def _exact_squares(experiment: Experiment, arm: str) -> list[float]:
    """Return the exact mean squared errors by coverage: a single release's own draw has no part in them."""
    return _means(np.square(experiment.outcomes[arm].stddev), experiment.coverage)


def _worst_ratio(experiment: Experiment, arm: str, other: str, mask: NDArray[np.bool_], by: Floats) -> float:
    """Return the largest ratio of mean absolute errors over the fifths of some queries."""
    ours, theirs = (_means(experiment.absolute(name)[mask], by[mask]) for name in (arm, other))
    return max(own / basic for own, basic in zip(ours, theirs, strict=True))


def _ratio_of(measure: Callable[[str], Floats], arm: str, other: str) -> Callable[[NDArray[np.bool_]], float]:
    """Return what gives the ratio of two arms' mean errors over some queries."""
    ours, theirs = measure(arm), measure(other)
    return lambda mask: float(ours[mask].mean() / theirs[mask].mean())
