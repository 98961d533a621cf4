"""``veilcube plan --useful``: how many rows, which error or which epsilon make a released histogram useful."""

from math import ceil
from pathlib import Path

from veilcube.cli.output import print_json, say, show_number, show_table
from veilcube.errors import PlanError
from veilcube.planner.usefulness import MEANINGS, Usefulness, usefulness
from veilcube.privacy import Neighbours
from veilcube.schema import Schema


def plan_usefulness(
    file: Path | None,
    cells: int | None,
    epsilon: str | None,
    error: float | None,
    rows: float | None,
    delta: float,
    neighbours: Neighbours,
    as_json: bool,
) -> None:
    """Find the one of rows, error and epsilon that is left out, and show it by each bound."""
    if (file is None) == (cells is None):
        raise PlanError("give either a schema file or --cells, the number of cells of the histogram")
    size = cells if cells is not None else Schema.from_toml(file).cells  # type: ignore[arg-type]
    found = usefulness(cells=size, epsilon=epsilon, error=error, rows=rows, delta=delta, neighbours=str(neighbours))
    if as_json:
        print_json(found.to_dict())
        return
    _show(found)


def _show(found: Usefulness) -> None:
    values = getattr(found, found.solved)
    # A part of a row is no row.
    shown = {bound: ceil(value) if found.solved == "rows" else value for bound, value in values.items()}
    asked = {"rows": "Rows that are needed", "error": "Error, as a share of the rows", "epsilon": "Epsilon needed"}
    say(f"{asked[found.solved]}, with probability {1 - found.delta:.6g}, {found.cells:,} cells:", "")
    show_table(
        ("bound", found.solved, "holds for"),
        [(bound, show_number(shown[bound]), meaning) for bound, meaning in MEANINGS.items()],
        numbers=[found.solved],
    )
    say("", f"Neighbours: {found.neighbours}. No data was read and no budget spent.")
