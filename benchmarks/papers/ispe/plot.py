"""The paper's figures as one page and one picture: a row for each, a panel for each table."""

from collections.abc import Sequence
from pathlib import Path
from types import ModuleType
from typing import Any

from benchmarks.drawing import COLOURS, load_extras, write_chart
from benchmarks.papers.ispe.questions import CELLS, SMALL
from benchmarks.papers.ispe.trials import Measured

_WIDTH, _HEIGHT = 300, 200
# Of the figures that have several kinds of queries, those that are drawn.
_DRAWN = (CELLS, SMALL)


def write_plot(folder: Path, measured: Sequence[Measured]) -> list[Path]:
    """Write the figures; none if there is nothing to draw or Altair is not installed."""
    swept = [one for one in measured if one.setting is not None]
    extras = load_extras()
    if extras is None or not swept:
        return []
    altair, converter = extras
    rows = [altair.hconcat(*_panels(altair, swept, part)) for part in dict.fromkeys(one.part for one in swept)]
    chart = altair.vconcat(*rows).resolve_scale(color="independent")
    return write_chart(converter, chart, folder, "ispe")


def _panels(altair: ModuleType, measured: Sequence[Measured], part: str) -> list[Any]:
    panels = []
    for table in dict.fromkeys(one.table for one in measured if one.part == part):
        here = [one for one in measured if (one.part, one.table) == (part, table)]
        kinds: list[str | None] = [kind for kind in _DRAWN if any(one.queries == kind for one in here)]
        # Query sizes are a setting of their own, and all of them make one panel.
        for kind in kinds or [None]:
            points = [
                {
                    "x": one.setting,
                    "error": one.error,
                    "low": max(one.error - 2 * one.stderr, one.error / 10),
                    "high": one.error + 2 * one.stderr,
                    "arm": one.arm,
                }
                for one in here
                if kind is None or one.queries == kind
            ]
            panels.append(_panel(altair, points, f"{part}: {table}" + (f", {kind}" if kind else "")))
    return panels


def _panel(altair: ModuleType, points: list[dict[str, Any]], title: str) -> Any:
    arms = list(dict.fromkeys(point["arm"] for point in points))
    scale = altair.Scale(domain=arms, range=[COLOURS[i % len(COLOURS)] for i in range(len(arms))])
    base = altair.Chart(altair.Data(values=points)).encode(
        x=altair.X("x:Q", title=None), color=altair.Color("arm:N", scale=scale, title=None)
    )
    error = altair.Y("error:Q", scale=altair.Scale(type="log"), title="mean absolute error")
    lines = base.mark_line(point=True, opacity=0.85).encode(
        y=error, tooltip=["arm:N", "x:Q", altair.Tooltip("error:Q", format=".4g")]
    )
    bars = base.mark_rule(opacity=0.5).encode(y=altair.Y("low:Q", title="mean absolute error"), y2="high:Q")
    return (bars + lines).properties(
        width=_WIDTH, height=_HEIGHT, title=altair.TitleParams(title, anchor="start", fontSize=11)
    )
