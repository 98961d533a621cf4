"""Pages with plots: one HTML file each that needs no network, in one style."""

import json
from collections.abc import Mapping
from html import escape
from pathlib import Path
from string import Template
from types import ModuleType

from veilcube.cli.pages.charts import Chart, Rows, styled
from veilcube.errors import VeilcubeError


class MissingExtraError(VeilcubeError):
    """The packages that draw charts are not installed."""


def load_extras(wanted: str = "a report") -> tuple[ModuleType, ModuleType]:
    """Return Altair and vl-convert, or say how to install what ``wanted`` needs."""
    try:
        import altair  # noqa: PLC0415 - an extra, needed only for charts
        import vl_convert  # noqa: PLC0415 - an extra, needed only for charts
    except ImportError as problem:
        raise MissingExtraError(
            f"{wanted} needs Altair and vl-convert; run pip install 'veilcube[report]'"
        ) from problem
    return altair, vl_convert


def fill_page(
    template: str, title: str, charts: Mapping[str, Chart], data: Mapping[str, Rows], fields: Mapping[str, str]
) -> str:
    """Return a page: the body in the file ``template`` with its fields, which are HTML, and charts by their ids."""
    _, converter = load_extras()
    content = {"specs": {name: styled(chart).to_dict() for name, chart in charts.items()}, "datasets": data}
    shown = escape(title)
    return _read("page_template.html").substitute(
        title=shown,
        body=_read(template).substitute(fields, title=shown),
        library=converter.javascript_bundle(),
        # A closing tag inside the data would end the script early.
        content=json.dumps(content).replace("</", "<\\/"),
    )


def _read(name: str) -> Template:
    return Template(Path(__file__).with_name(name).read_text(encoding="utf-8"))
