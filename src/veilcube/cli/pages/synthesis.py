"""The page about the quality of synthetic rows: one HTML file with plots that needs no network."""

from html import escape
from pathlib import Path

import numpy as np

from veilcube.analyst import MaxEntropyModel, Quality
from veilcube.cli.shared import show_number
from veilcube.record import History
from veilcube.system import ACCENT, GROUPS, MUTED, Altair, Chart, Rows, atomic_file, fill_page, load_extras, spec_of

_MOST_BARS = 60
_MOST_POINTS = 4000


def write_quality_report(history: History, model: MaxEntropyModel, quality: Quality, count: int, path: Path) -> None:
    """Write the page; it shows noisy measurements and the model, both public, and nothing else."""
    altair, _ = load_extras()
    charts = {"distances": spec_of(_distances(altair)), "answers": spec_of(_answers(altair))}
    data = {"distances": _distance_rows(quality), "answers": _answer_rows(history, model)}
    fields = _fields(model, quality, history, count)
    page = fill_page(
        Path(__file__).with_name("synthesize_template.html"), "Quality of synthetic rows", charts, data, fields
    )
    with atomic_file(path) as stream:
        stream.write(page.encode())


def _distance_rows(quality: Quality) -> Rows:
    worst = sorted(quality.marginals, key=lambda entry: -entry.error)[:_MOST_BARS]
    return [
        {
            "attributes": " × ".join(entry.names),
            "ways": f"{len(entry.names)}-way",
            "error": entry.error,
            "noise": entry.noise,
        }
        for entry in sorted(worst, key=lambda entry: (len(entry.names), entry.names))
    ]


def _answer_rows(history: History, model: MaxEntropyModel) -> Rows:
    chosen = np.unique(np.linspace(0, len(history) - 1, min(len(history), _MOST_POINTS)).astype(np.int64))
    answers = model.answer(history.queries[chosen]).value
    return [
        {"noisy": float(noisy), "model": float(value)}
        for noisy, value in zip(history.values[chosen], answers, strict=True)
    ]


def _distances(alt: Altair) -> Chart:
    base = alt.Chart(alt.NamedData("distances")).encode(
        y=alt.Y("attributes:N", title=None, sort=None, axis=alt.Axis(labelLimit=320))
    )
    bars = base.mark_bar(height={"band": 0.7}).encode(
        x=alt.X("error:Q", title="distance from the noisy measurements, as a share of all rows"),
        color=alt.Color("ways:N", title=None, scale=alt.Scale(range=list(GROUPS[:3]))),
        tooltip=["attributes:N", alt.Tooltip("error:Q", format=".4f"), alt.Tooltip("noise:Q", format=".4f")],
    )
    ticks = base.mark_tick(color=MUTED, thickness=2, height=14).encode(x="noise:Q")
    title = alt.TitleParams("Distance by attributes", subtitle="grey tick: what the noise alone makes", anchor="start")
    return alt.layer(bars, ticks).properties(width=640, title=title)


def _answers(alt: Altair) -> Chart:
    points = alt.Chart(alt.NamedData("answers")).mark_point(size=12, opacity=0.4, color=ACCENT)
    title = alt.TitleParams("Every measurement", subtitle="noisy count against the model's count", anchor="start")
    return points.encode(
        x=alt.X("noisy:Q", title="noisy measurement", scale=alt.Scale(type="symlog")),
        y=alt.Y("model:Q", title="model", scale=alt.Scale(type="symlog")),
    ).properties(width=420, height=420, title=title)


def _fields(model: MaxEntropyModel, quality: Quality, history: History, count: int) -> dict[str, str]:
    lines = [
        f"<tr><td>{ways}-way</td><td>{many}</td><td>{show_number(error)}</td><td>{show_number(noise)}</td></tr>"
        for ways, many, error, noise in quality.by_ways()
    ]
    return {
        "rows": f"{count:,}",
        "measurements": f"{len(history):,}",
        "axes": escape(" × ".join(model.schema.names)),
        "privacy": escape(history.privacy or "The privacy promise is that of the measurements."),
        "convergence": escape(str(model.convergence)),
        "table": "\n".join(lines),
    }
