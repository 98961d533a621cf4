"""The parts of the benchmark that are about kernel PCA, each a figure of the paper or a bar of ours."""

import time
from dataclasses import dataclass

import numpy as np
from scipy.linalg import eigh

import veilcube as vc
from benchmarks.papers.history.asking import FUNCTIONS, RANGES, Asked, PublicTable, ask, root_mean_square
from benchmarks.papers.history.findings import Findings
from benchmarks.papers.privelet.verdict import Claim, Verdict, log_slope
from veilcube.analyst.history import KernelPCAModel
from veilcube.analyst.history.base.kernel import ProductKernel
from veilcube.analyst.history.base.prior import read_prior

RATIO_BAR, REGRET_BAR, COVERAGE_BAR = 0.31, 1.03, 0.93
KERNEL_BAR, FIT_BAR = 3.0, 2.0
SHOWN = 4  # of the alphas on the grid, every so many are printed; the files hold all


@dataclass(frozen=True)
class AlphaError:
    """The error at one alpha (figure 2), and what the history predicts of it (figure 3), where it was asked."""

    kind: str
    prior: str
    alpha: float
    past: float
    new: float
    predicted: float | None = None
    cross_validated: float | None = None


@dataclass(frozen=True)
class SettingError:
    """The error for one setting of the experiment (figure 4), with the chosen alpha."""

    varied: str
    value: float
    noisy: float
    uniform: float
    prior: float
    new: float


@dataclass(frozen=True)
class FitTime:
    """Seconds for so many queries (figure 5)."""

    queries: int
    kernel: float
    decomposition: float
    fit: float
    answers: float


def run_alpha(findings: Findings) -> None:
    """Compare alphas on past and new queries, with and without a prior, for both kinds of queries."""
    table, size = findings.table, findings.size
    for kind, queries in ((RANGES, size.queries), (FUNCTIONS, size.functions)):
        asked = ask(table, kind, queries, size.scale * queries / size.queries, size.new)
        for name in ("measured", "uniform"):
            model = fit(asked, has_prior=name == "measured")
            found = _errors_by_alpha(asked, model, kind, name)
            findings.add("error by alpha", found, every=SHOWN)
            if kind == RANGES:
                _judge(findings, asked, model, found)


def _errors_by_alpha(asked: Asked, model: KernelPCAModel, kind: str, prior: str) -> list[AlphaError]:
    assert model.search is not None
    alphas = model.search.alphas.tolist()
    past = model.values_for(asked.history.queries, alphas) - asked.truth
    new = model.values_for(asked.new, alphas) - asked.new_truth
    return [
        AlphaError(kind, prior, alpha, root_mean_square(ours), root_mean_square(theirs), predicted)
        for alpha, ours, theirs, predicted in zip(alphas, past, new, model.search.errors.tolist(), strict=True)
    ]


def _judge(findings: Findings, asked: Asked, model: KernelPCAModel, found: list[AlphaError]) -> None:
    prior = found[0].prior
    best = min(one.past for one in found)
    chosen = next(one for one in found if one.alpha == model.alpha)
    for which, queries, truth in (("past", asked.history.queries, asked.truth), ("new", asked.new, asked.new_truth)):
        answers = model.answer(queries)
        held = float(np.mean((answers.low <= truth) & (truth <= answers.high)))
        bar = COVERAGE_BAR if which == "past" and findings.is_full else None
        findings.verdicts.append(
            Verdict("alpha", f"95% intervals of {which} queries that hold, {prior} prior", held, low=bar)
        )
    is_barred = findings.is_full and prior == "measured"
    figures = f"{chosen.past:,.0f} / {asked.noisy_rmse:,.0f}"
    findings.verdicts += [
        Verdict(
            "alpha",
            f"RMSE of past queries over that of their noisy answers, {prior} prior",
            chosen.past / asked.noisy_rmse,
            high=RATIO_BAR if is_barred else None,
            note=figures,
        ),
        Verdict(
            "alpha",
            f"RMSE at the chosen alpha over the best on the grid, {prior} prior",
            chosen.past / best,
            high=REGRET_BAR if is_barred else None,
        ),
    ]


def run_cross_validation(findings: Findings) -> None:
    """Compare what five groups and leave-one-out predict with the true error."""
    size = findings.size
    asked = ask(findings.table, RANGES, size.groups_queries, size.scale, size.new)
    grouped, single = (fit(asked, alpha=alpha) for alpha in ("cv", "loo"))
    assert grouped.search is not None
    rows = [
        AlphaError(one.kind, one.prior, one.alpha, one.past, one.new, one.predicted, crossed)
        for one, crossed in zip(
            _errors_by_alpha(asked, single, RANGES, "measured"), grouped.search.errors.tolist(), strict=True
        )
    ]
    findings.add("predicted error", rows, every=SHOWN)
    best = min(one.new for one in rows)
    by_groups = next(one.new for one in rows if one.alpha == grouped.alpha)
    findings.claims.append(
        Claim(
            "figure 3",
            "the alpha that minimises the cross-validated error usually minimises the true one",
            f"5 groups: {by_groups / best - 1:.1%} above the best alpha for new queries",
            by_groups / best <= REGRET_BAR,
        )
    )
    at = next(one for one in rows if one.alpha == grouped.alpha)
    assert at.cross_validated is not None
    findings.claims.append(
        Claim(
            "figure 3",
            "cross-validation often overestimates the error, for it learns from fewer queries",
            f"5 groups predict {at.cross_validated:,.0f}; past queries have {at.past:,.0f}, new ones {at.new:,.0f}",
            at.cross_validated >= at.new,
        )
    )


def run_settings(findings: Findings) -> None:
    """Vary the number of queries, the noise and the rows."""
    size, table = findings.size, findings.table
    rows = [
        *(_error_of("queries", queries, table, queries, size.scale) for queries in size.varied_queries),
        *(_error_of("scale", scale, table, size.fixed_queries, scale) for scale in size.varied_scales),
        *(_error_of("rows", one.rows, one, size.fixed_queries, size.scale) for one in findings.smaller_tables()),
    ]
    findings.add("error by setting", rows)


def _error_of(varied: str, value: float, table: PublicTable, queries: int, scale: float) -> SettingError:
    asked = ask(table, RANGES, queries, scale, new=1000)
    uniform, prior = (fit(asked, has_prior=has_prior) for has_prior in (False, True))
    without, given = (
        root_mean_square(model.values_for(asked.history.queries, [model.alpha])[0] - asked.truth)
        for model in (uniform, prior)
    )
    new = root_mean_square(prior.values_for(asked.new, [prior.alpha])[0] - asked.new_truth)
    return SettingError(varied, float(value), asked.noisy_rmse, without, given, new)


def run_time(findings: Findings) -> None:
    """Time the kernel, one decomposition of that size, the whole fit, and answers to as many queries."""
    rows = []
    for queries in findings.size.timed_queries:
        asked = ask(findings.table, RANGES, queries, findings.size.scale, new=100)
        kernel = ProductKernel(read_prior(findings.table.schema, asked.prior))
        started = time.perf_counter()
        products = kernel.between(asked.history.queries, asked.history.queries)
        made = time.perf_counter()
        eigh(products)
        decomposed = time.perf_counter()
        model = fit(asked)
        fitted = time.perf_counter()
        model.answer(asked.history.queries)
        ended = time.perf_counter()
        rows.append(FitTime(queries, made - started, decomposed - made, fitted - decomposed, ended - fitted))
    findings.add("seconds", rows)
    last = rows[-1]
    bars = (KERNEL_BAR, FIT_BAR) if findings.is_full else (None, None)
    for name, seconds, bar in (("kernel", last.kernel, bars[0]), ("whole fit", last.fit, bars[1])):
        what = f"time of the {name} over one scipy.linalg.eigh, {last.queries:,} queries"
        findings.verdicts.append(Verdict("time", what, seconds / last.decomposition, high=bar))
    slope = log_slope([row.queries for row in rows], [row.fit for row in rows])
    findings.claims.append(
        Claim("figure 5", "time grows with the cube of the queries at most", f"power {slope:.1f}", slope <= 3.3)
    )


def fit(asked: Asked, *, has_prior: bool = True, alpha: str = "loo") -> KernelPCAModel:
    """Learn from what was asked, the total known, as in the paper."""
    return vc.KernelPCA(alpha=alpha, prior=asked.prior if has_prior else None).fit(asked.history, total=asked.rows)
