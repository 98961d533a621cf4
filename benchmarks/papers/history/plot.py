"""The paper's figures 2 to 5 and 7 as one page and one picture: a row for each that was run."""

from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from types import ModuleType
from typing import Any

from benchmarks.drawing import line_panel, load_extras, write_chart
from benchmarks.papers.history.findings import Findings

Points = list[dict[str, object]]


def write_plot(findings: Findings) -> list[Path]:
    """Write the figures of the parts that were run; none if there are none or Altair is not installed."""
    extras = load_extras()
    if extras is None:
        return []
    altair, converter = extras
    rows = [draw(altair, findings.rows[title]) for title, draw in _FIGURES.items() if findings.rows.get(title)]
    if not rows:
        return []
    chart = altair.vconcat(*rows).resolve_scale(color="independent")
    return write_chart(converter, chart, findings.folder, "history")


def _by_alpha(altair: ModuleType, rows: Sequence[Any]) -> Any:
    panels = []
    for kind in dict.fromkeys(row.kind for row in rows):
        here = [row for row in rows if row.kind == kind]
        points = _lines(here, "alpha", lambda row: {f"{row.prior} prior, past": row.past, f"{row.prior}, new": row.new})
        panels.append(line_panel(altair, points, f"figure 2: {kind}", "alpha", "root mean squared error"))
    return altair.hconcat(*panels)


def _predicted(altair: ModuleType, rows: Sequence[Any]) -> Any:
    names = {"new": "true, new queries", "predicted": "leave-one-out", "cross_validated": "cross-validated"}
    points = _lines(rows, "alpha", lambda row: {word: getattr(row, name) for name, word in names.items()})
    return altair.hconcat(line_panel(altair, points, "figure 3", "alpha", "root mean squared error"))


def _by_setting(altair: ModuleType, rows: Sequence[Any]) -> Any:
    names = ("noisy", "uniform", "prior", "new")
    panels = []
    for varied in dict.fromkeys(row.varied for row in rows):
        here = [row for row in rows if row.varied == varied]
        points = _lines(here, "value", lambda row: {name: getattr(row, name) for name in names})
        panels.append(line_panel(altair, points, f"figure 4: {varied}", varied, "root mean squared error"))
    return altair.hconcat(*panels)


def _seconds(altair: ModuleType, rows: Sequence[Any]) -> Any:
    names = ("kernel", "decomposition", "fit", "answers")
    points = _lines(rows, "queries", lambda row: {name: getattr(row, name) for name in names})
    return altair.hconcat(line_panel(altair, points, "figure 5", "queries", "seconds"))


def _by_attributes(altair: ModuleType, rows: Sequence[Any]) -> Any:
    names = ("maximum_entropy", "independence", "retention_replacement")
    points = _lines(rows, "attributes", lambda row: {name.replace("_", " "): getattr(row, name) for name in names})
    panel = line_panel(altair, points, "figure 7", "attributes of a range", "root mean squared error", across="linear")
    return altair.hconcat(panel)


_FIGURES: dict[str, Callable[[ModuleType, Sequence[Any]], Any]] = {
    "error by alpha": _by_alpha,
    "predicted error": _predicted,
    "error by setting": _by_setting,
    "seconds": _seconds,
    "k-D ranges": _by_attributes,
}


def _lines(rows: Iterable[Any], across: str, read: Callable[[Any], dict[str, float | None]]) -> Points:
    # Logarithmic axes have no place for errors of nothing but rounding, nor for an infinite alpha.
    return [
        {"x": getattr(row, across), "y": value, "line": name}
        for row in rows
        if 0 < getattr(row, across) < float("inf")
        for name, value in read(row).items()
        if value is not None and value > 1e-6
    ]
