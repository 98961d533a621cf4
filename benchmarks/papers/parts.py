"""What the benchmark of every paper shares: its options, its folder, and the run of its parts one after the other."""

import argparse
import tempfile
from collections.abc import Callable, Mapping
from pathlib import Path
from types import ModuleType
from typing import Protocol, TypeVar

from rich.console import Console


class Gathers(Protocol):
    """What the parts add to."""

    @property
    def console(self) -> Console:
        """Where they show what they found."""


Findings = TypeVar("Findings", bound=Gathers)
Parts = Mapping[str, Callable[[Findings], None]]


def parser_of(paper: ModuleType, parts: "Parts[Findings]") -> argparse.ArgumentParser:
    """Return a parser of --quick, --only and --out, described by the package; a paper adds options of its own."""
    parser = argparse.ArgumentParser(
        prog=f"python -m {paper.__name__}",
        description=paper.__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("--quick", action="store_true", help="small sizes: proves that it runs, and nothing else")
    parser.add_argument("--only", choices=list(parts), action="append", help="may be repeated (default all parts)")
    parser.add_argument("--out", type=Path, metavar="DIR", help="where results go (default a new temporary folder)")
    return parser


def folder_for(paper: ModuleType, options: argparse.Namespace) -> Path:
    """Return the folder that was asked for, or a new one; it exists afterwards."""
    folder: Path = options.out or Path(tempfile.mkdtemp(prefix=f"{paper.__name__.rsplit('.', 1)[-1]}-"))
    folder.mkdir(parents=True, exist_ok=True)
    return folder


def run_parts(findings: Findings, parts: "Parts[Findings]", options: argparse.Namespace) -> None:
    """Run the parts that were asked for, by default all of them."""
    for name in options.only or parts:
        findings.console.print(f"-- {name}")
        parts[name](findings)
