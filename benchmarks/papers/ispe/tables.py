"""What was found as aligned tables for a terminal."""

from collections.abc import Sequence

from rich.console import Console
from rich.table import Table

from benchmarks.papers.ispe.coverage import Coverage
from benchmarks.papers.ispe.trials import Measured, kinds_in_order
from benchmarks.papers.privelet.verdict import Claim


def show_measured(console: Console, measured: Sequence[Measured]) -> None:
    """Print a part on a table: an arm and kind of query to a line, with settings to the right where there are some."""
    for part, name in dict.fromkeys((one.part, one.table) for one in measured):
        here = [one for one in measured if (one.part, one.table) == (part, name)]
        title = f"{part}, {name}, epsilon {here[0].epsilon:g}: mean absolute error ± standard error"
        by_setting = here[0].setting is not None
        console.print(_by_setting(here, title) if by_setting else _by_kind(here, title))


def _by_kind(measured: Sequence[Measured], title: str) -> Table:
    kinds = kinds_in_order(measured)
    table = Table(title=title, title_justify="left")
    table.add_column("arm")
    for kind in kinds:
        table.add_column(kind, justify="right")
    known = {(one.arm, one.queries): one for one in measured}
    for arm in dict.fromkeys(one.arm for one in measured):
        table.add_row(arm, *(_field(known.get((arm, kind))) for kind in kinds))
    return table


def _by_setting(measured: Sequence[Measured], title: str) -> Table:
    settings = list(dict.fromkeys(one.setting for one in measured))
    # Where queries are what is set, their kind says no more than the setting does.
    is_size = all(one.queries == f"{one.setting:g}" for one in measured)
    known = {(one.arm, "" if is_size else one.queries, one.setting): one for one in measured}
    table = Table(title=title, title_justify="left")
    table.add_column("arm")
    table.add_column("" if is_size else "queries")
    for setting in settings:
        table.add_column(f"{setting:.3g}", justify="right")
    for arm, kind in dict.fromkeys((arm, kind) for arm, kind, _ in known):
        table.add_row(arm, kind, *(_field(known.get((arm, kind, setting))) for setting in settings))
    return table


def _field(one: Measured | None) -> str:
    return "" if one is None else f"{one.error:,.2f} ± {one.stderr:.2f}"


def show_coverage(console: Console, found: Sequence[Coverage]) -> None:
    """Print the coverage of every partition and estimator, a kind of query to a column."""
    kinds = list(dict.fromkeys(one.queries for one in found))
    table = Table(title="coverage of 95% intervals, in percent ± standard error", title_justify="left")
    for name in ("table", "partition", "estimator"):
        table.add_column(name)
    for kind in kinds:
        table.add_column(kind, justify="right")
    known = {(one.table, one.partition, one.estimator, one.queries): one for one in found}
    for row in dict.fromkeys(key[:3] for key in known):
        fields = (known[(*row, kind)] for kind in kinds)
        table.add_row(*row, *(f"{100 * one.coverage:.1f} ± {100 * one.stderr:.1f}" for one in fields))
    console.print(table)


def show_claims(console: Console, claims: Sequence[Claim]) -> None:
    """Print every claim of the paper with ours beside it."""
    if not claims:
        return
    table = Table(title="claims of the paper's section 5", title_justify="left")
    for name in ("where", "the paper says", "found", ""):
        table.add_column(name)
    for claim in claims:
        table.add_row(claim.where, claim.paper, claim.ours, claim.word)
    console.print(table)
