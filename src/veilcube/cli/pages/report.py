"""The report of a release: one HTML page that needs no network, and one picture. Made from the release alone."""

from collections.abc import Sequence
from dataclasses import dataclass
from html import escape
from pathlib import Path

from veilcube.analyst import Release
from veilcube.cli.pages.charts import Chart, Figures, Rows, styled
from veilcube.cli.pages.page import fill_page, load_extras
from veilcube.cli.shared import show_confidence, show_interval, show_number
from veilcube.errors import ReleaseFileError
from veilcube.query import Answers


@dataclass(frozen=True)
class ReportPlan:
    """What a report shows: two numeric attributes, a nominal one, and some queries."""

    title: str
    distribution: str
    across: str
    bars: str
    queries: Sequence[str]
    confidence: float = 0.95


def write_report(release: Release, plan: ReportPlan, folder: Path) -> tuple[Path, Path]:
    """Write ``report.html`` and ``report.png`` into a folder and return their paths."""
    altair, converter = load_extras()
    figures = Figures(altair, release, plan.confidence)
    data = figures.data(plan.distribution, plan.across, plan.bars)
    page = _page(release, plan, _charts(figures, plan), data)
    picture = converter.vegalite_to_png(_poster(figures, plan).to_dict() | {"datasets": data}, scale=2)
    html, png = folder / "report.html", folder / "report.png"
    try:
        html.write_text(page, encoding="utf-8")
        png.write_bytes(picture)
    except OSError as problem:
        raise ReleaseFileError(f"cannot write the report into {folder}: {problem.strerror}") from problem
    return html, png


def _charts(figures: Figures, plan: ReportPlan) -> dict[str, Chart]:
    return {
        "distribution": figures.distribution(plan.distribution, width=930, height=260),
        "heatmap": figures.heatmap(plan.distribution, plan.across, width=360, height=380),
        "bars": figures.bars(plan.bars, width=300, height=380),
    }


def _poster(figures: Figures, plan: ReportPlan) -> Chart:
    alt, promise = figures.alt, str(figures.release.privacy).split(". ", maxsplit=1)[0]
    wide = figures.distribution(plan.distribution, width=960, height=260)
    left = figures.heatmap(plan.distribution, plan.across, width=440, height=380)
    right = figures.bars(plan.bars, width=320, height=380)
    lower = alt.hconcat(left, right, spacing=40).resolve_scale(color="independent")
    heading = alt.TitleParams(plan.title, subtitle=f"{promise}.", fontSize=22, subtitleFontSize=13, offset=24)
    poster = alt.vconcat(wide, lower, spacing=36, title=heading).resolve_scale(color="independent")
    return styled(poster).properties(padding=28)


def _page(release: Release, plan: ReportPlan, charts: dict[str, Chart], data: dict[str, Rows]) -> str:
    fields = {
        "privacy": escape(str(release.privacy)),
        "made": escape(f"{release.record.made_with}, {release.record.created}"),
        "cells": f"{release.schema.cells:,}",
        "axes": escape(" × ".join(release.schema.names)),
        "interval": escape(f"{show_confidence(plan.confidence)} interval"),
        "rows": "\n".join(_row(release, query, plan.confidence) for query in plan.queries),
    }
    return fill_page("report_template.html", plan.title, charts, data, fields)


def _row(release: Release, query: str, confidence: float) -> str:
    answer = release.count(query, confidence=confidence)
    if isinstance(answer, Answers):
        raise TypeError("a row of the report holds one count, so its query must not have GROUP BY")
    cells = (show_number(answer.value), show_interval(answer.low, answer.high))
    return (
        f"<tr><td><code>{escape(query)}</code></td>" + "".join(f"<td>{escape(cell)}</td>" for cell in cells) + "</tr>"
    )
