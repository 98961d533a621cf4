"""Pages with plots: one HTML file each that needs no network, in one style. Altair is handed in: it is an extra."""

import json
from collections.abc import Mapping
from functools import cache
from html import escape
from pathlib import Path
from string import Template
from types import ModuleType
from typing import Any, TypeAlias

from veilcube.system.extras import load_extra

Altair: TypeAlias = Any  # the module: it cannot be named in types, since it may not be installed
Chart: TypeAlias = Any
Rows: TypeAlias = list[dict[str, object]]
Spec: TypeAlias = dict[str, Any]

INK, MUTED, GRID, ACCENT = "#1f2933", "#616e7c", "#e4e7eb", "#0072b2"
# Colours that people who confuse red and green tell apart (Okabe and Ito 2008).
GROUPS = ("#0072b2", "#e69f00", "#009e73", "#cc79a7", "#56b4e9", "#d55e00", "#8a8f98")
FONT = "system-ui, -apple-system, 'Segoe UI', 'Liberation Sans', 'DejaVu Sans', Arial, sans-serif"


def load_extras(wanted: str = "a report") -> tuple[ModuleType, ModuleType]:
    """Return Altair and vl-convert, or say how to install what ``wanted`` needs."""
    called = "Altair and vl-convert"
    return load_extra("altair", wanted, "report", called), load_extra("vl_convert", wanted, "report", called)


def styled(chart: Chart) -> Chart:
    """Return a chart with the fonts and colours of the report."""
    axis = {"labelColor": MUTED, "titleColor": MUTED, "titleFontWeight": "normal"}
    return (
        chart.configure(font=FONT, background="white")
        .configure_view(stroke=None)
        .configure_title(fontSize=16, fontWeight=600, color=INK, subtitleFontSize=12, subtitleColor=MUTED, offset=12)
        .configure_axis(gridColor=GRID, domainColor=GRID, tickColor=GRID, **axis)
        .configure_legend(**axis)
    )


def fill_page(
    template: Path, title: str, specs: Mapping[str, Spec], data: Mapping[str, Rows], fields: Mapping[str, str]
) -> str:
    """Return a page: the body in the file ``template`` with its fields, which are HTML, and charts by their ids."""
    content = {"specs": specs, "datasets": data}
    shown = escape(title)
    return _read(Path(__file__).with_name("page_template.html")).substitute(
        title=shown,
        body=_read(template).substitute(fields, title=shown),
        library=_charting_library(),
        # No tag or comment inside the data may end the script, or hide its end.
        content=json.dumps(content).replace("<", "\\u003c"),
    )


def spec_of(chart: Chart) -> Spec:
    """Return a chart in the style of the report, as Vega-Lite's plain data."""
    found: Spec = styled(chart).to_dict()
    return found


@cache
def _charting_library() -> str:
    """Return the program that draws charts in a browser; bundling it takes seconds."""
    _, converter = load_extras()
    return str(converter.javascript_bundle())


def _read(path: Path) -> Template:
    return Template(path.read_text(encoding="utf-8"))
