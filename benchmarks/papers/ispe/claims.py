"""The claims of the paper's section 5, each judged by a rule that is written down here."""

from collections.abc import Callable, Mapping, Sequence

import numpy as np
from numpy.typing import NDArray

import veilcube as vc
from benchmarks.papers.ispe.coverage import CHOSEN_BAR, CONFIDENCE
from benchmarks.papers.ispe.data import RANDOM, SMOOTH, Table
from benchmarks.papers.ispe.figures import (
    BY_METHOD,
    BY_PASSES,
    BY_SIZE,
    BY_SPLIT,
    BY_XI,
    EQUAL,
    GEOMETRIC,
    REVERSED,
    SHARES,
    TWO_LEVELS,
    Figure,
)
from benchmarks.papers.ispe.paper import (
    CONSISTENCY,
    MMSE,
    NEIGHBOURS,
    UNWEIGHTED,
    neighbourhood_intervals,
    paper_strategy,
)
from benchmarks.papers.ispe.questions import CELLS, KINDS, SMALL
from benchmarks.papers.ispe.trials import Ratio, ratio_of, stderr_of
from benchmarks.papers.privelet.verdict import Claim, log_slope

# What the paper's words are taken to mean: a difference counts from two standard errors on, equal is within 5%, and to
# outperform is to be better by both.
SURE = 2.0
EQUAL_WITHIN = 0.05

Floats = NDArray[np.float64]


def judge_figures(figures: Sequence[Figure]) -> list[Claim]:
    """Return every claim for each table that a figure was drawn on."""
    judges: Mapping[str, Callable[[Figure], list[Claim]]] = {
        BY_SPLIT: _about_split,
        BY_PASSES: _about_passes,
        BY_XI: _about_xi,
        BY_METHOD: _about_method,
        BY_SIZE: _about_size,
        TWO_LEVELS: _about_levels,
    }
    return [claim for figure in figures if figure.name in judges for claim in judges[figure.name](figure)]


def _about_split(figure: Figure) -> list[Claim]:
    errors = _swept(figure, NEIGHBOURS, SMALL)
    settings = list(errors)
    best = min(settings, key=lambda setting: float(errors[setting].mean()))
    is_inside = best not in (settings[0], settings[-1])
    is_clear = all(
        is_below(ratio_of(errors[best], errors[end]), 1) for end in (settings[0], settings[-1]) if end != best
    )
    found = f"best at {best:g}: " + _series(errors)
    if figure.table == RANDOM:
        paper = "an optimal share of the cells is not clear in random data"
        return [Claim(_place(figure, SMALL), paper, found, not (is_inside and is_clear))]
    paper = "there is an optimal point of the cells' share of the budget"
    return [Claim(_place(figure, SMALL), paper, found, is_inside and is_clear)]


def _about_passes(figure: Figure) -> list[Claim]:
    errors = _swept(figure, NEIGHBOURS, CELLS)
    first, last = (errors[setting] for setting in (min(errors), max(errors)))
    change = ratio_of(last, first)
    place = _place(figure, CELLS)
    if figure.table == SMOOTH:
        return [Claim(place, "error declines with more passes", _series(errors), is_below(change, 1))]
    if figure.table == RANDOM:
        return [Claim(place, "error increases with more passes", _series(errors), is_above(change, 1))]
    best = min(errors, key=lambda setting: float(errors[setting].mean()))
    turns = is_below(ratio_of(errors[best], first), 1) and is_below(ratio_of(errors[best], last), 1)
    return [Claim(place, "error may first decline, then incline with more passes", _series(errors), turns)]


def _about_xi(figure: Figure) -> list[Claim]:
    errors = _swept(figure, NEIGHBOURS, CELLS)
    settings = sorted(errors)
    change = ratio_of(errors[settings[-1]], errors[settings[0]])
    place = _place(figure, CELLS)
    if figure.table == SMOOTH:
        return [Claim(place, "error declines when the threshold increases", _series(errors), is_below(change, 1))]
    if figure.table == RANDOM:
        is_unclear = not is_below(change, 1) and not is_above(change, 1)
        return [Claim(place, "no clear trend with the threshold in random data", _series(errors), is_unclear)]
    steady = ratio_of(errors[settings[-1]], errors[settings[-2]])
    falls_then_rests = is_below(change, 1) and abs(steady.value - 1) <= EQUAL_WITHIN
    return [Claim(place, "error may first decline, then remain stable", _series(errors), falls_then_rests)]


def _about_method(figure: Figure) -> list[Claim]:
    errors = figure.errors[None]
    found = []
    for kind in KINDS:
        ratio = ratio_of(errors[NEIGHBOURS, kind], errors[CONSISTENCY, kind])
        words = f"{ratio.value:.3f} ± {ratio.stderr:.3f} times the error of least squares on the same regions"
        if figure.table == RANDOM:
            paper = "MMSE(NR) and consistency perform equally in random data"
            found.append(Claim(_place(figure, kind), paper, words, abs(ratio.value - 1) <= EQUAL_WITHIN))
        else:
            paper = "MMSE(NR) outperforms consistency because of the neighbourhood reference"
            found.append(Claim(_place(figure, kind), paper, words, is_better(ratio)))
        if (MMSE, kind) in errors:
            plain = ratio_of(errors[MMSE, kind], errors[CONSISTENCY, kind])
            words = f"{plain.value:.3f} ± {plain.stderr:.3f} times its error"
            paper = "(ours) MMSE without NR is within 5% of least squares"
            found.append(Claim(_place(figure, kind), paper, words, abs(plain.value - 1) <= EQUAL_WITHIN))
    return found


def _about_size(figure: Figure) -> list[Claim]:
    means = {
        arm: [float(figure.errors[share][arm, f"{share:g}"].mean()) for share in SHARES]
        for arm in (NEIGHBOURS, CONSISTENCY)
    }
    ours, theirs = (log_slope([share**2 for share in SHARES], means[arm]) for arm in (NEIGHBOURS, CONSISTENCY))
    grows = all(after > before for before, after in zip(means[NEIGHBOURS], means[NEIGHBOURS][1:], strict=False))
    place = _place(figure, "ranges")
    found = [
        Claim(
            place,
            "the error increases gradually with the size of the range",
            ", ".join(f"{mean:,.1f}" for mean in means[NEIGHBOURS]) + f" for sides of {SHARES[0]:g} to {SHARES[-1]:g}",
            grows,
        )
    ]
    if figure.table != RANDOM:
        slower = "the error of ISPE increases slower than that of consistency"
        found.append(Claim(place, slower, f"as cells^{ours:.2f} beside cells^{theirs:.2f}", ours < theirs))
    return found


def _about_levels(figure: Figure) -> list[Claim]:
    found = []
    for partition in ("blocks", "kd"):
        for kind in (CELLS, SMALL):
            ratios = {
                split: ratio_of(
                    figure.errors[split][f"{MMSE}, {partition}", kind],
                    figure.errors[split][f"{UNWEIGHTED}, {partition}", kind],
                )
                for split in (EQUAL, GEOMETRIC, REVERSED)
            }
            place = f"{_place(figure, kind)}, {partition}"
            words = _words(ratios[EQUAL])
            paper = "equal budgets: MMSE and consistency perform almost equally"
            found.append(Claim(place, paper, words, abs(ratios[EQUAL].value - 1) <= EQUAL_WITHIN))
            uneven = "; ".join(f"cells' share {split:.2f}: {_words(ratios[split])}" for split in (GEOMETRIC, REVERSED))
            outperforms = any(is_better(ratios[split]) for split in (GEOMETRIC, REVERSED))
            found.append(Claim(place, "geometric budgets: MMSE outperforms consistency", uneven, outperforms))
    return found


def judge_intervals(table: Table, epsilon: float, releases: int) -> Claim:
    """Return how often the paper's own 95% intervals of cells hold the truth."""
    chosen = vc.plan(table.schema, epsilon, paper_strategy(epsilon))
    shares = []
    for _ in range(releases):
        low, high = neighbourhood_intervals(vc.release(table.cube, plan=chosen), CONFIDENCE)
        shares.append(float(np.mean((low <= table.counts) & (table.counts <= high))))
    found = np.array(shares)
    return Claim(
        f"interval estimates (4.2), {table.name}, {CELLS}",
        "the posterior (with NR) gives interval estimates as well",
        f"95% intervals hold {found.mean():.1%} ± {stderr_of(found):.1%} of the cells",
        float(found.mean()) >= CHOSEN_BAR,
    )


def is_below(ratio: Ratio, bound: float) -> bool:
    """Whether a ratio is below a bound by more than its noise."""
    return ratio.value + SURE * ratio.stderr < bound


def is_better(ratio: Ratio) -> bool:
    """Whether a ratio of errors is below 1 by more than its noise, and by more than what counts as equal."""
    return is_below(ratio, 1) and ratio.value < 1 - EQUAL_WITHIN


def is_above(ratio: Ratio, bound: float) -> bool:
    """Whether a ratio is above a bound by more than its noise."""
    return ratio.value - SURE * ratio.stderr > bound


def _swept(figure: Figure, arm: str, kind: str) -> dict[float, Floats]:
    return {setting: errors[arm, kind] for setting, errors in figure.errors.items() if setting is not None}


def _series(errors: Mapping[float, Floats]) -> str:
    return ", ".join(f"{setting:g}: {each.mean():,.2f}" for setting, each in errors.items())


def _words(ratio: Ratio) -> str:
    return f"{ratio.value:.3f} ± {ratio.stderr:.3f} times its error"


def _place(figure: Figure, kind: str) -> str:
    return f"{figure.name}, {figure.table}, {kind}"
