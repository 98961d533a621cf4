"""The paper's figures: error against coverage and selectivity, and time against rows and cells."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from types import ModuleType
from typing import Any

from benchmarks.drawing import line_panel, load_extras, write_chart
from benchmarks.papers.privelet.accuracy import Quintile
from benchmarks.papers.privelet.scaling import Timing

_ERRORS = (("coverage", "square"), ("coverage", "absolute"), ("selectivity", "relative"))


def write_plots(folder: Path, quintiles: Sequence[Quintile], timings: Mapping[str, Sequence[Timing]]) -> list[Path]:
    """Write each figure as a page and as a picture; none if Altair is not installed."""
    extras = load_extras()
    if extras is None:
        return []
    altair, converter = extras
    charts = {}
    if quintiles:
        charts["accuracy"] = _accuracy(altair, quintiles)
    if timings:
        charts["time"] = _times(altair, timings)
    written = []
    for name, chart in charts.items():
        written += write_chart(converter, chart, folder, f"privelet-{name}")
    return written


def _accuracy(altair: ModuleType, quintiles: Sequence[Quintile]) -> Any:
    rows = []
    for census, epsilon in dict.fromkeys((one.census, one.epsilon) for one in quintiles):
        here = [one for one in quintiles if (one.census, one.epsilon) == (census, epsilon)]
        panels = []
        for by, error in _ERRORS:
            # A logarithmic axis has no place for queries that count nothing.
            points = [
                {"x": one.middle, "y": getattr(one, error), "line": one.arm}
                for one in here
                if one.by == by and one.middle > 0
            ]
            title = f"{census}, epsilon {epsilon:g}"
            panels.append(line_panel(altair, points, title, f"mean {by} of the quintile", f"mean {error} error"))
        rows.append(altair.hconcat(*panels))
    return altair.vconcat(*rows)


def _times(altair: ModuleType, timings: Mapping[str, Sequence[Timing]]) -> Any:
    panels = []
    for size, measured in timings.items():
        points = [
            {"x": getattr(one, size), "y": seconds, "line": name}
            for one in measured
            if one.clock == "wall"
            for name, seconds in (("Basic", one.basic), ("Privelet+", one.plus), ("Privelet*", one.star))
        ]
        panels.append(line_panel(altair, points, f"time against {size}", size, "seconds"))
    return altair.hconcat(*panels)
