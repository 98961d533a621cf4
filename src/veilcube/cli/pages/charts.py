"""Charts of a release, made from its public answers alone. Altair is handed in, because it is an extra."""

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, TypeAlias

from veilcube.cli.shared import show_confidence
from veilcube.query import Answers
from veilcube.schema import Nominal, Ordinal

if TYPE_CHECKING:  # charts of plans need no release, which takes long to load
    from veilcube.analyst import Release

Altair: TypeAlias = Any  # the module: it cannot be named in types, since it may not be installed
Chart: TypeAlias = Any
Rows: TypeAlias = list[dict[str, object]]

INK, MUTED, GRID, ACCENT = "#1f2933", "#616e7c", "#e4e7eb", "#2b6cb0"
HEAT = ("#f7fafc", "#bee3f8", "#4299e1", "#2b6cb0", "#1a365d")
GROUPS = ("#2b6cb0", "#2f9e8f", "#d9822b", "#8e5bb5", "#b83280", "#718096")
FONT = "system-ui, -apple-system, 'Segoe UI', 'Liberation Sans', 'DejaVu Sans', Arial, sans-serif"


@dataclass(frozen=True)
class Figures:
    """Draws charts of one release; ``confidence`` is that of all intervals."""

    alt: Altair
    release: "Release"
    confidence: float

    def distribution(self, name: str, *, width: int, height: int) -> Chart:
        """Return the counts along a numeric attribute, with the band of their intervals."""
        alt, places = self.alt, _ordinal(self.release, name).centres()
        ends = alt.Scale(domain=[places[0], places[-1]], nice=False)
        base = alt.Chart(alt.NamedData(name)).encode(
            x=alt.X("cell:Q", title=name, scale=ends, axis=alt.Axis(grid=False, tickMinStep=1)),
            tooltip=self._tooltip(("cell", name)),
        )
        band = base.mark_area(color=ACCENT, opacity=0.22).encode(y=alt.Y("low:Q", title="people"), y2="high:Q")
        line = base.mark_line(color=ACCENT, strokeWidth=2).encode(y="value:Q")
        points = base.mark_point(color=ACCENT, filled=True, size=26, opacity=1).encode(y="value:Q")
        detail = f"line: estimate, band: {show_confidence(self.confidence)} interval of each count"
        title = self._title(f"People by {name}", detail)
        return alt.layer(band, line, points).properties(width=width, height=height, title=title)

    def heatmap(self, across: str, upwards: str, *, width: int, height: int) -> Chart:
        """Return the counts over two numeric attributes as colours."""
        alt = self.alt
        columns, rows = _ordinal(self.release, across), _ordinal(self.release, upwards)
        colour = alt.Color(
            "value:Q",
            title="people",
            scale=alt.Scale(type="sqrt", range=list(HEAT), domainMin=0, clamp=True),
            legend=alt.Legend(gradientLength=height - 40, gradientThickness=10, tickCount=4),
        )
        chart = alt.Chart(alt.NamedData(f"{across} x {upwards}")).mark_rect()
        chart = chart.encode(
            x=alt.X("x:O", title=across, axis=self._sparse_axis(columns)),
            y=alt.Y("y:O", title=upwards, sort="descending", axis=self._sparse_axis(rows)),
            color=colour,
            tooltip=self._tooltip(("x", across), ("y", upwards), interval=False),
        )
        title = self._title(f"People by {across} and {upwards}", "estimated count of every cell")
        return chart.properties(width=width, height=height, title=title)

    def bars(self, name: str, *, width: int, height: int) -> Chart:
        """Return the counts of a nominal attribute as bars with intervals, coloured by their top group."""
        alt, labels = self.alt, self.release.schema[name].labels()
        groups = list(dict.fromkeys(_top_groups(self.release, name)))
        base = alt.Chart(alt.NamedData(name)).encode(
            y=alt.Y("cell:N", title=None, sort=labels, axis=alt.Axis(labelLimit=150)),
            tooltip=self._tooltip(("cell", name)),
        )
        colour = alt.Color(
            "group:N",
            title=None,
            scale=alt.Scale(domain=groups, range=[GROUPS[k % len(GROUPS)] for k in range(len(groups))]),
            legend=alt.Legend(orient="bottom", columns=4) if len(groups) > 1 else None,
        )
        body = base.mark_bar(opacity=0.75, height=alt.RelativeBandSize(0.72)).encode(
            x=alt.X("value:Q", title="people", axis=alt.Axis(tickCount=5)), color=colour
        )
        whiskers = base.mark_rule(color=INK, strokeWidth=1.6).encode(x="low:Q", x2="high:Q")
        title = self._title(f"People by {name}", f"whisker: {show_confidence(self.confidence)} interval")
        return alt.layer(body, whiskers).properties(width=width, height=height, title=title)

    def data(self, distribution: str, across: str, bars: str) -> dict[str, Rows]:
        """Return the answers behind the three charts under the names that they call them by."""
        numbers = _ordinal(self.release, distribution).centres().tolist()
        others = _ordinal(self.release, across).centres().tolist()
        table = self.release.marginal(distribution, across)
        labels, groups = self.release.schema[bars].labels(), _top_groups(self.release, bars)
        answers = self.release.marginal(bars, confidence=self.confidence)
        return {
            distribution: _rows(numbers, self.release.marginal(distribution, confidence=self.confidence)),
            f"{distribution} x {across}": [
                {"x": x, "y": y, "value": float(table.value[i, j])}
                for i, x in enumerate(numbers)
                for j, y in enumerate(others)
            ],
            bars: [row | {"group": group} for row, group in zip(_rows(labels, answers), groups, strict=True)],
        }

    def _title(self, what: str, detail: str) -> Any:
        promise = self.release.privacy.short_words
        return self.alt.TitleParams(what, subtitle=f"{promise}; {detail}", anchor="start", frame="group")

    def _tooltip(self, *labels: tuple[str, str], interval: bool = True) -> list[Any]:
        numbers = [("value", "estimate"), ("low", "low"), ("high", "high")]
        return [self.alt.Tooltip(f"{field}:N", title=title) for field, title in labels] + [
            self.alt.Tooltip(f"{field}:Q", title=title, format=",.0f")
            for field, title in numbers[: 3 if interval else 1]
        ]

    def _sparse_axis(self, attribute: Ordinal) -> Any:
        centres = attribute.centres().tolist()
        shown = [centre for centre in centres if centre % 10 == 0] or centres
        return self.alt.Axis(values=shown, grid=False, labelAngle=0, domain=False)


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


def _rows(cells: list[Any], answers: Answers) -> Rows:
    ends = zip(cells, answers.value.tolist(), answers.low.tolist(), answers.high.tolist(), strict=False)
    return [{"cell": cell, "value": value, "low": low, "high": high} for cell, value, low, high in ends]


def _ordinal(release: "Release", name: str) -> Ordinal:
    attribute = release.schema[name]
    if not isinstance(attribute, Ordinal):
        raise TypeError(f"the chart of '{name}' needs an ordinal attribute")
    return attribute


def _top_groups(release: "Release", name: str) -> list[str]:
    """Return the top group of every cell; a value without a group, and a cell of stray values, stands for itself."""
    attribute = release.schema[name]
    labels = attribute.labels()
    if isinstance(attribute, Nominal) and attribute.hierarchy.groups:
        for top in attribute.hierarchy.root.children:
            labels[top.first : top.end] = [top.name] * (top.end - top.first)
        return labels
    return [name] * len(labels)
