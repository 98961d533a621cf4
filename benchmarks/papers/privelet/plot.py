"""The paper's figures: error against coverage and selectivity, and time against rows and cells."""

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from types import ModuleType
from typing import Any

from benchmarks.papers.privelet.accuracy import Quintile
from benchmarks.papers.privelet.scaling import Timing

COLOURS = ("#718096", "#2b6cb0", "#d9822b", "#b83280", "#2f9e8f", "#8e5bb5", "#975a16", "#4a5568", "#c53030")
_WIDTH, _HEIGHT = 300, 220
_ERRORS = (("coverage", "square"), ("coverage", "absolute"), ("selectivity", "relative"))


def write_plots(folder: Path, quintiles: Sequence[Quintile], timings: Mapping[str, Sequence[Timing]]) -> list[Path]:
    """Write each figure as a page and as a picture; none if Altair is not installed."""
    extras = _load_extras()
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
        spec = json.dumps(chart.configure(background="white").configure_view(stroke=None).to_dict())
        page, picture = folder / f"privelet-{name}.html", folder / f"privelet-{name}.svg"
        page.write_text(converter.vegalite_to_html(spec, bundle=True), encoding="utf-8")
        picture.write_text(converter.vegalite_to_svg(spec), encoding="utf-8")
        written += [page, picture]
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
            panels.append(_panel(altair, points, title, f"mean {by} of the quintile", f"mean {error} error"))
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
        panels.append(_panel(altair, points, f"time against {size}", size, "seconds"))
    return altair.hconcat(*panels)


def _panel(altair: ModuleType, points: list[dict[str, object]], title: str, x: str, y: str) -> Any:
    names = list(dict.fromkeys(str(point["line"]) for point in points))
    scale = altair.Scale(domain=names, range=[COLOURS[i % len(COLOURS)] for i in range(len(names))])
    logarithmic = altair.Scale(type="log")
    return (
        altair.Chart(altair.Data(values=points))
        .mark_line(point=True, opacity=0.85)
        .encode(
            x=altair.X("x:Q", scale=logarithmic, title=x),
            y=altair.Y("y:Q", scale=logarithmic, title=y),
            color=altair.Color("line:N", scale=scale, title=None),
            tooltip=["line:N", altair.Tooltip("x:Q", format=".4g"), altair.Tooltip("y:Q", format=".4g")],
        )
        .properties(width=_WIDTH, height=_HEIGHT, title=altair.TitleParams(title, anchor="start"))
    )


def _load_extras() -> tuple[ModuleType, ModuleType] | None:
    try:
        import altair  # noqa: PLC0415 - an extra, needed only for charts
        import vl_convert  # noqa: PLC0415 - an extra, needed only for charts
    except ImportError:
        return None
    return altair, vl_convert
