"""A chart of the ratios of every arm, one panel for each task and epsilon."""

from collections.abc import Sequence
from pathlib import Path
from types import ModuleType
from typing import Any

from benchmarks.drawing import load_extras, write_chart
from benchmarks.peers.dpbench.arms import ARMS
from benchmarks.peers.dpbench.measure import Result

COLOURS = ("#2b6cb0", "#718096", "#d9822b", "#2f9e8f", "#b83280", "#8e5bb5")
_WIDTH, _ROW_HEIGHT = 460, 22


def write_plots(results: Sequence[Result], folder: Path) -> list[Path]:
    """Write the chart as a page and as a picture; nothing if Altair is not installed."""
    extras = load_extras()
    if extras is None or not results:
        return []
    altair, converter = extras
    return write_chart(converter, _chart(altair, results), folder, "dpbench")


def _chart(altair: ModuleType, results: Sequence[Result]) -> Any:
    keys = dict.fromkeys((result.task, result.epsilon) for result in results)
    panels = [
        _panel(altair, [result for result in results if (result.task, result.epsilon) == key], *key) for key in keys
    ]
    return altair.vconcat(*panels)


def _panel(altair: ModuleType, results: Sequence[Result], task: str, epsilon: float) -> Any:
    """Draw the ratio to the best peer where peers were measured, else that to the matched strategy."""
    against_peer = any(result.to_peer is not None for result in results)
    rows = []
    for result in results:
        ratio = result.to_peer if against_peer else result.to_matched
        if ratio:
            rows.append({"query": f"{result.array}, {result.workload}", "arm": result.arm, "ratio": ratio})
    reference = "the best peer" if against_peer else "the matched strategy"
    names = [arm.name for arm in ARMS]
    colours = altair.Scale(domain=names, range=[COLOURS[i % len(COLOURS)] for i in range(len(names))])
    points = (
        altair.Chart(altair.Data(values=rows))
        .mark_point(filled=True, size=70, opacity=0.85)
        .encode(
            x=altair.X(
                "ratio:Q",
                scale=altair.Scale(type="log", nice=False, padding=12),
                title=f"RMSE over that of {reference}",
            ),
            y=altair.Y("query:N", title=None, axis=altair.Axis(labelLimit=220, grid=True)),
            color=altair.Color("arm:N", title=None, scale=colours),
            tooltip=["query:N", "arm:N", altair.Tooltip("ratio:Q", format=".3f")],
        )
    )
    line = altair.Chart(altair.Data(values=[{"ratio": 1}])).mark_rule(strokeDash=[4, 3]).encode(x="ratio:Q")
    height = _ROW_HEIGHT * len({row["query"] for row in rows})
    title = altair.TitleParams(f"{task}, epsilon {epsilon:g}", anchor="start")
    return altair.layer(line, points).properties(width=_WIDTH, height=height, title=title)
