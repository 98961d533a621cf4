"""What the parts of the benchmark find: rows of figures, figures beside their bars, and claims of the paper."""

from collections.abc import Sequence
from dataclasses import dataclass, field, fields
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.table import Table

from benchmarks.papers.history.asking import PublicTable
from benchmarks.papers.history.census import PeopleTable
from benchmarks.papers.privelet.verdict import Claim, Verdict
from benchmarks.report import write_csv


@dataclass(frozen=True)
class Size:
    """How large a run is."""

    rows: int
    queries: int
    functions: int
    scale: float
    new: int
    groups_queries: int
    fixed_queries: int
    varied_queries: tuple[int, ...]
    varied_scales: tuple[float, ...]
    varied_rows: tuple[int, ...]
    timed_queries: tuple[int, ...]


FULL = Size(
    rows=500_000,
    queries=5000,
    functions=1000,
    scale=5000.0,
    new=2000,
    groups_queries=2000,
    fixed_queries=2000,
    varied_queries=(500, 1000, 2000, 3000),
    varied_scales=(500.0, 1500.0, 5000.0, 15_000.0),
    varied_rows=(50_000, 150_000, 500_000),
    timed_queries=(1250, 2500, 5000),
)
QUICK = Size(
    rows=20_000,
    queries=150,
    functions=40,
    scale=300.0,
    new=100,
    groups_queries=120,
    fixed_queries=100,
    varied_queries=(50, 150),
    varied_scales=(100.0, 300.0),
    varied_rows=(10_000, 20_000),
    timed_queries=(100, 200),
)


@dataclass
class Findings:
    """What the parts add to, and what is shown and written at the end."""

    console: Console
    folder: Path
    size: Size
    table: PublicTable
    verdicts: list[Verdict] = field(default_factory=list)
    claims: list[Claim] = field(default_factory=list)
    rows: dict[str, list[Any]] = field(default_factory=dict)

    @property
    def is_full(self) -> bool:
        """Whether the run is of the size, and on the table, that the bars are about."""
        return self.is_large and isinstance(self.table, PeopleTable)

    @property
    def is_large(self) -> bool:
        """Whether the run is of full size, on whatever table."""
        return self.size is FULL

    def smaller_tables(self) -> list[PublicTable]:
        """Return tables like this one with fewer rows; none where the table cannot be drawn anew."""
        return [PeopleTable(rows) for rows in self.size.varied_rows] if isinstance(self.table, PeopleTable) else []

    def add(self, title: str, rows: Sequence[Any], *, every: int = 1) -> None:
        """Show rows, data classes of one kind (of many only some), and write them with those of the same title."""
        self.show(title, rows[::every])
        self.rows.setdefault(title, []).extend(rows)
        write_csv(self.folder / f"{title.replace(' ', '-')}.csv", self.rows[title])

    def show(self, title: str, rows: Sequence[Any]) -> None:
        """Print rows, data classes of one kind, as a table."""
        if not rows:
            return
        shown = Table(title=title, title_justify="left")
        names = [one.name for one in fields(rows[0])]
        for name in names:
            shown.add_column(name, justify="right" if not isinstance(getattr(rows[0], name), str) else "left")
        for row in rows:
            shown.add_row(*(_text(getattr(row, name)) for name in names))
        self.console.print(shown)


def _text(value: object) -> str:
    if value is None:
        return ""
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, float):
        return f"{value:,.0f}" if abs(value) >= 100 else f"{value:.3g}"
    return f"{value:,}" if isinstance(value, int) else str(value)
