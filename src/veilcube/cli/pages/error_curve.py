"""The error of a plan against its budget, in epsilon or rho: as text for a terminal, and as a chart in a file."""

import json
from collections.abc import Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from itertools import chain
from math import ceil, floor, log10
from pathlib import Path
from types import ModuleType

from veilcube.cli.shared import show_number
from veilcube.errors import PlanError, PrivacyError, ReleaseFileError
from veilcube.planner import FAMILIES, Identity, Plan
from veilcube.privacy import show_fraction
from veilcube.system import ACCENT, MUTED, Chart, load_extras, styled

SUFFIXES = (".html", ".svg")
POINTS = 25
WIDTH, HEIGHT = 60, 12


@dataclass(frozen=True)
class Curve:
    """The expected error of one strategy at several budgets in epsilon or rho; ``mark`` stands for it in text."""

    name: str
    mark: str
    points: tuple[tuple[Fraction, float], ...]
    budget: str = "epsilon"


def curves_of(chosen: Plan) -> list[Curve]:
    """Return the curve of the plan and, beside it, of measuring every cell; a decade to either side of its budget.

    Where both families of noise keep the promise, cells are measured with the one that suits them better.
    """
    budget = "rho" if chosen.promise.is_in_rho else "epsilon"
    curves = [Curve(chosen.strategy.name, "*", _points(chosen), budget)]
    if chosen.strategy != Identity():
        families = FAMILIES[:1] if chosen.promise.is_pure else FAMILIES
        operator = Identity().operator(chosen.schema)
        plain = [replace(chosen, strategy=Identity(), operator=operator, family=family) for family in families]
        curves.insert(0, Curve("identity", ".", _least(list(map(_points, plain))), budget))
    return curves


def _points(chosen: Plan) -> tuple[tuple[Fraction, float], ...]:
    found = []
    for step in range(POINTS):
        factor = Fraction(10 ** (2 * step / (POINTS - 1) - 1)).limit_denominator(1000)
        try:
            promise = chosen.promise.scaled(factor)
            budget = promise.cost if promise.is_in_rho else promise.epsilon
            found.append((budget, replace(chosen, promise=promise).expected_error))
        except PrivacyError:  # so small that its noise cannot be drawn
            continue
    return tuple(found)


def _least(curves: Sequence[tuple[tuple[Fraction, float], ...]]) -> tuple[tuple[Fraction, float], ...]:
    """Return the lower envelope of several curves."""
    least: dict[Fraction, float] = {}
    for budget, error in chain.from_iterable(curves):
        least[budget] = min(error, least.get(budget, error))
    return tuple(sorted(least.items()))


def text_plot(curves: Sequence[Curve]) -> str:
    """Return the curves as lines of text, both axes logarithmic."""
    points = [(float(budget), error, curve.mark) for curve in curves for budget, error in curve.points if error > 0]
    if not points:
        return ""
    left, right = log10(min(x for x, _, _ in points)), log10(max(x for x, _, _ in points))
    low, high = floor(log10(min(y for _, y, _ in points))), ceil(log10(max(y for _, y, _ in points)))
    grid = [[" "] * (WIDTH + 1) for _ in range(HEIGHT + 1)]
    for x, y, mark in points:
        column = round((log10(x) - left) / max(right - left, 1e-9) * WIDTH)
        row = round((high - log10(y)) / max(high - low, 1) * HEIGHT)
        grid[row][column] = mark
    ticks = {
        round((high - power) / max(high - low, 1) * HEIGHT): show_number(10.0**power) for power in range(low, high + 1)
    }
    margin = max(map(len, ticks.values()))
    lines = [f"{ticks.get(row, ''):>{margin}} |{''.join(cells).rstrip()}" for row, cells in enumerate(grid)]
    ends = show_fraction(curves[0].points[0][0]), show_fraction(curves[0].points[-1][0])
    lines.append(f"{'':>{margin}} +{'-' * (WIDTH + 1)}")
    lines.append(f"{'':>{margin}}  {ends[0]}{curves[0].budget:^{WIDTH + 1 - len(ends[0]) - len(ends[1])}}{ends[1]}")
    legend = "   ".join(f"{curve.mark} {curve.name}" for curve in curves)
    return "\n".join([f"expected error of one count   {legend}", *lines])


def require_drawable(path: Path) -> None:
    """Refuse, before any work is done, a file that no chart can be written to."""
    if path.suffix.lower() not in SUFFIXES:
        raise PlanError(f"a plot cannot be drawn into {path}; give it a name that ends in {' or '.join(SUFFIXES)}")
    load_extras("a plot")


def write_plot(curves: Sequence[Curve], title: str, path: Path) -> None:
    """Write the curves as a chart; a page of HTML needs no network to be read."""
    altair, converter = load_extras("a plot")
    spec = json.dumps(styled(_chart(altair, curves, title)).to_dict())
    is_page = path.suffix.lower() == ".html"
    drawn = converter.vegalite_to_html(spec, bundle=True) if is_page else converter.vegalite_to_svg(spec)
    try:
        path.write_text(drawn, encoding="utf-8")
    except OSError as problem:
        raise ReleaseFileError(f"cannot write the plot to {path}: {problem.strerror}") from problem


def _chart(altair: ModuleType, curves: Sequence[Curve], title: str) -> Chart:
    rows = [
        {"strategy": curve.name, "budget": float(budget), "error": error}
        for curve in curves
        for budget, error in curve.points
        if error > 0
    ]
    names = [curve.name for curve in curves]
    colours = [MUTED, ACCENT][-len(names) :]
    log_scale = altair.Scale(type="log", nice=False)
    return (
        altair.Chart(altair.Data(values=rows))
        .mark_line(strokeWidth=2, point=True)
        .encode(
            x=altair.X("budget:Q", scale=log_scale, title=curves[0].budget),
            y=altair.Y("error:Q", scale=altair.Scale(type="log"), title="expected error of one count"),
            color=altair.Color("strategy:N", title=None, scale=altair.Scale(domain=names, range=colours)),
            tooltip=[
                altair.Tooltip("strategy:N"),
                altair.Tooltip("budget:Q", format=".4g", title=curves[0].budget),
                altair.Tooltip("error:Q", format=",.4g"),
            ],
        )
        .properties(width=560, height=320, title=altair.TitleParams(title, anchor="start"))
    )
