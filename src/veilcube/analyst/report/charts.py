"""Charts of a release, made from its public answers alone."""

from dataclasses import dataclass
from typing import Any

from veilcube.analyst.report.views import View, cut_name
from veilcube.query import Answers
from veilcube.system import ACCENT, GRID, GROUPS, INK, MUTED, Altair, Chart, Rows, show_confidence

HEAT = ("#f7fbff", "#c6dbef", "#6baed6", "#2171b5", "#08306b")
# Cells of a table over two attributes that have room for their numbers.
MOST_NUMBERS = 120
_LABEL_WIDTH, _LETTER_WIDTH, _NUMBER_WIDTH, _LEGEND_WIDTH = 190, 7, 76, 70


@dataclass(frozen=True)
class Figures:
    """Draws charts; ``promise`` is said below each title, ``confidence`` is that of all intervals."""

    alt: Altair
    promise: str
    confidence: float

    def along(self, view: View, data: str, *, width: int) -> Chart:
        """Return the counts along numbers or dates, with the band of their intervals."""
        alt = self.alt
        kind = "T" if view.kind == "dates" else "Q"
        scale = alt.Undefined if kind == "T" else alt.Scale(domain=[view.places[0], view.places[-1]], nice=False)
        ticks: dict[str, Any] = {} if kind == "T" else {"tickMinStep": 1, "format": "d"}
        axis = alt.Axis(grid=False, labelOverlap=True, **ticks)
        base = alt.Chart(alt.NamedData(data)).encode(
            x=alt.X(f"place:{kind}", title=cut_name(view.name), scale=scale, axis=axis),
            tooltip=self._tooltip(("label", view.name)),
        )
        band = base.mark_area(color=ACCENT, opacity=0.25).encode(y=alt.Y("low:Q", title="rows"), y2="high:Q")
        line = base.mark_line(color=ACCENT, strokeWidth=2).encode(y="value:Q")
        points = base.mark_point(color=ACCENT, filled=True, size=22, opacity=1).encode(y="value:Q")
        title = self._title(f"Rows by {cut_name(view.name)}", "line: estimate, band: its interval", view.note)
        return alt.layer(band, line, points).properties(width=width, height=240, title=title)

    def bars(self, view: View, data: str, *, width: int) -> Chart:
        """Return counts as bars with intervals, coloured by top groups where there are any."""
        alt, room = self.alt, _room_for(view)
        base = alt.Chart(alt.NamedData(data)).encode(
            y=alt.Y("label:N", title=None, sort=None, axis=alt.Axis(labelLimit=_LABEL_WIDTH)),
            tooltip=self._tooltip(("label", view.name)),
        )
        groups = list(dict.fromkeys(group for group in view.groups if group))
        colour: Any = alt.value(ACCENT)
        if groups:
            scale = alt.Scale(domain=groups, range=[GROUPS[k % len(GROUPS)] for k in range(len(groups))])
            legend = alt.Legend(orient="bottom", columns=3, labelLimit=width // 3)
            colour = alt.Color("group:N", title=None, scale=scale, legend=legend)
        axis = alt.Axis(tickCount=5, labelOverlap=True)
        body = base.mark_bar(opacity=0.7, height=alt.RelativeBandSize(0.7)).encode(
            x=alt.X("value:Q", title="rows", axis=axis), color=colour
        )
        whiskers = base.mark_rule(color=INK, strokeWidth=1.5).encode(x="low:Q", x2="high:Q")
        ends = [base.mark_tick(color=INK, thickness=1.5, height=9).encode(x=f"{end}:Q") for end in ("low", "high")]
        title = self._title(f"Rows by {cut_name(view.name)}", "bar: estimate, whisker: its interval", view.note)
        chart = alt.layer(body, whiskers, *ends)
        return chart.properties(width=width - room, height=alt.Step(20), title=title)

    def heatmap(self, across: View, upwards: View, data: str, *, width: int) -> Chart:
        """Return the counts over two attributes as colours; a dot where the interval reaches 0."""
        alt, inner = self.alt, width - _room_for(upwards) - _LEGEND_WIDTH
        has_room = len(across) * len(upwards) <= MOST_NUMBERS and inner >= _NUMBER_WIDTH * len(across)
        sort = list(reversed(upwards.labels)) if upwards.is_ordered else None
        axis = {"grid": False, "domain": False, "labelOverlap": True}
        base = alt.Chart(alt.NamedData(data)).encode(
            x=alt.X("x:O", title=cut_name(across.name), sort=None, axis=alt.Axis(**axis, labelLimit=110)),
            y=alt.Y("y:O", title=cut_name(upwards.name), sort=sort, axis=alt.Axis(**axis, labelLimit=_LABEL_WIDTH)),
            tooltip=self._tooltip(("x", across.name), ("y", upwards.name)),
        )
        legend = alt.Legend(gradientLength=160, gradientThickness=10, tickCount=4)
        scale = alt.Scale(type="sqrt", range=list(HEAT), domainMin=0, clamp=True)
        cells = base.mark_rect(stroke=GRID, strokeWidth=0.5).encode(
            color=alt.Color("value:Q", title="rows", scale=scale, legend=legend)
        )
        unsure = base.transform_filter("datum.low <= 0").mark_point(color=MUTED, filled=True, size=7, shape="circle")
        layers = [cells] if has_room else [cells, unsure]
        if has_room:
            is_dark = "datum.value > 0.35 * datum.most"
            ink = alt.condition(is_dark, alt.value("white"), alt.value(INK))
            layers.append(base.mark_text(fontSize=10).encode(text=alt.Text("shown:N"), color=ink))
        what = "number: estimate ± half of its interval" if has_room else "dot: the interval reaches 0"
        notes = [f"{cut_name(view.name)}: {view.note}" for view in (across, upwards) if view.note]
        title = self._title(f"Rows by {cut_name(across.name)} and {cut_name(upwards.name)}", what, *notes)
        height = min(max(26 * len(upwards) if has_room else 14 * len(upwards), 120), 380)
        return alt.layer(*layers).properties(width=inner, height=height, title=title)

    def _title(self, what: str, detail: str, *notes: str) -> Any:
        lines = [f"{self.promise}; {detail} ({show_confidence(self.confidence)})", *(note for note in notes if note)]
        return self.alt.TitleParams(what, subtitle=lines, anchor="start", frame="bounds")

    def _tooltip(self, *labels: tuple[str, str]) -> list[Any]:
        numbers = (("value", "estimate"), ("low", "low"), ("high", "high"))
        named = [self.alt.Tooltip(f"{field}:N", title=cut_name(title)) for field, title in labels]
        return named + [self.alt.Tooltip(f"{field}:Q", title=title, format=",.0f") for field, title in numbers]


def _room_for(view: View) -> int:
    """Return about how wide the labels of an axis are."""
    return min(max((_LETTER_WIDTH * len(label) for label in view.labels), default=0) + 24, _LABEL_WIDTH)


def rows_of(view: View, answers: Answers) -> Rows:
    """Return the data of a chart over one attribute."""
    rows = _with_numbers([{"label": label} for label in view.labels], answers)
    for row, place in zip(rows, view.places, strict=False):
        row["place"] = place
    for row, group in zip(rows, view.groups, strict=False):
        row["group"] = group
    return rows


def rows_of_two(across: View, upwards: View, answers: Answers) -> Rows:
    """Return the data of a chart over two attributes, the second changing fastest."""
    rows = _with_numbers([{"x": x, "y": y} for x in across.labels for y in upwards.labels], answers)
    most = max(float(answers.value.max(initial=0.0)), 1.0)
    for row, one in zip(rows, answers, strict=True):
        row |= {"most": most, "shown": f"{one.value:,.0f} ±{(one.high - one.low) / 2:,.0f}"}
    return rows


def _with_numbers(labels: Rows, answers: Answers) -> Rows:
    ends = zip(labels, answers.value.tolist(), answers.low.tolist(), answers.high.tolist(), strict=True)
    return [row | {"value": value, "low": low, "high": high} for row, value, low, high in ends]
