"""Options that several commands share, said once."""

from pathlib import Path
from typing import Annotated, TypeAlias

import typer

from veilcube.privacy import Neighbours

JsonFlag: TypeAlias = Annotated[bool, typer.Option("--json", help="Print one JSON object instead of text.")]
Epsilon: TypeAlias = Annotated[
    str,
    typer.Option("--epsilon", metavar="NUMBER", help="The privacy budget to spend: 1, 0.1 or a fraction such as 1/3."),
]
NeighboursChoice: TypeAlias = Annotated[
    Neighbours,
    typer.Option(
        "--neighbours", help="What must stay hidden: that a unit is in the table, or which of two units is in it."
    ),
]
Person: TypeAlias = Annotated[
    str | None,
    typer.Option(
        "--person", metavar="COLUMN", help="Protect persons, named by this column, with all of their rows, not rows."
    ),
]
MaxRows: TypeAlias = Annotated[
    int | None,
    typer.Option("--max-rows", metavar="N", help="Keep at most N rows of each person; goes with --person."),
]
Strategy: TypeAlias = Annotated[
    str,
    typer.Option(
        "--strategy",
        metavar="NAME",
        help="What to measure: auto, identity, tree, refined tree, wavelet, adaptive, kd tree, marginals, matched.",
    ),
]
Confidence: TypeAlias = Annotated[
    float, typer.Option("--confidence", metavar="SHARE", help="How often an interval is to hold the true value.")
]
ReleaseFile: TypeAlias = Annotated[Path, typer.Argument(metavar="FILE", help="A release file (.veil).")]
SchemaFile: TypeAlias = Annotated[Path, typer.Argument(metavar="SCHEMA", help="A schema file (.toml).")]
LedgerUrl: TypeAlias = Annotated[
    str, typer.Argument(metavar="URL", help="The ledger: sqlite:///budget.db or the path of its file.")
]
Force: TypeAlias = Annotated[bool, typer.Option("--force", help="Write over a file that exists already.")]
