"""The errors that have bars: the default beside the identity, and beside least squares on the same blocks."""

import veilcube as vc
from benchmarks.papers.ispe.data import AGE_HOURS, SMOOTH, Table
from benchmarks.papers.ispe.questions import CELLS, KINDS, SMALL, questions_for
from benchmarks.papers.ispe.trials import Errors, by_estimator, ratio_of, run_trials
from benchmarks.papers.privelet.verdict import Verdict

PART = "errors"
DEFAULT, IDENTITY, LEAST_SQUARES = "default", "identity", "least squares on blocks"
NEVER_WORSE = 1.05
MUCH_BETTER = 0.65
# Where, and for which queries, the default must be much better than the identity.
MADE_FOR = {(table, kind) for table in (SMOOTH, AGE_HOURS) for kind in (CELLS, SMALL)}


def measure_errors(table: Table, epsilon: float, queries: int, releases: int) -> Errors:
    """Return the errors of the three arms; the default and least squares read the same releases."""
    asked = questions_for(table, queries)
    plain = run_trials(table, epsilon, vc.Identity(), [by_estimator(IDENTITY, "least_squares")], asked, releases)
    ours = [by_estimator(DEFAULT), by_estimator(LEAST_SQUARES, "least_squares")]
    return run_trials(table, epsilon, vc.Adaptive(), ours, asked, releases) | plain


def judge_errors(table: Table, errors: Errors) -> list[Verdict]:
    """Return the ratios of the default with their bars."""
    found = []
    for kind in KINDS:
        for rival in (IDENTITY, LEAST_SQUARES):
            ratio = ratio_of(errors[DEFAULT, kind], errors[rival, kind])
            bar = MUCH_BETTER if rival == IDENTITY and (table.name, kind) in MADE_FOR else NEVER_WORSE
            ours, theirs = errors[DEFAULT, kind].mean(), errors[rival, kind].mean()
            note = f"± {ratio.stderr:.3f}; {ours:,.2f} and {theirs:,.2f}"
            found.append(Verdict(PART, f"{table.name}, {kind}: default / {rival}", ratio.value, high=bar, note=note))
    return found
