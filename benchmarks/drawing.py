"""What benchmarks share to draw: charts as pages and pictures where Altair is installed, and panels of lines."""

import json
from collections.abc import Sequence
from pathlib import Path
from types import ModuleType
from typing import Any

COLOURS = ("#718096", "#2b6cb0", "#d9822b", "#b83280", "#2f9e8f", "#8e5bb5", "#975a16", "#4a5568", "#c53030")
_WIDTH, _HEIGHT = 300, 220


def load_extras() -> tuple[ModuleType, ModuleType] | None:
    """Return Altair and vl-convert, or None where they are not installed: figures are then left out."""
    try:
        import altair  # noqa: PLC0415 - an extra, needed only for charts
        import vl_convert  # noqa: PLC0415 - an extra, needed only for charts
    except ImportError:
        return None
    return altair, vl_convert


def write_chart(converter: ModuleType, chart: Any, folder: Path, name: str) -> list[Path]:
    """Write a chart as a page that needs no network and as a picture."""
    spec = json.dumps(chart.configure(background="white").configure_view(stroke=None).to_dict())
    page, picture = folder / f"{name}.html", folder / f"{name}.svg"
    page.write_text(converter.vegalite_to_html(spec, bundle=True), encoding="utf-8")
    picture.write_text(converter.vegalite_to_svg(spec), encoding="utf-8")
    return [page, picture]


def line_panel(
    altair: ModuleType, points: Sequence[dict[str, object]], title: str, x: str, y: str, across: str = "log"
) -> Any:
    """Draw points with ``x``, ``y`` and the ``line`` that they belong to, on logarithmic axes unless told otherwise."""
    names = list(dict.fromkeys(str(point["line"]) for point in points))
    scale = altair.Scale(domain=names, range=[COLOURS[i % len(COLOURS)] for i in range(len(names))])
    return (
        altair.Chart(altair.Data(values=list(points)))
        .mark_line(point=True, opacity=0.85)
        .encode(
            x=altair.X("x:Q", scale=altair.Scale(type=across), title=x),
            y=altair.Y("y:Q", scale=altair.Scale(type="log"), title=y),
            color=altair.Color("line:N", scale=scale, title=None),
            tooltip=["line:N", altair.Tooltip("x:Q", format=".4g"), altair.Tooltip("y:Q", format=".4g")],
        )
        .properties(width=_WIDTH, height=_HEIGHT, title=altair.TitleParams(title, anchor="start"))
    )
