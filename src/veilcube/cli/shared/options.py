"""Options that several commands share, said once: what they mean, and that each takes one value, given once."""

from collections import Counter
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Annotated, Any, TypeAlias

import typer
from typer.core import TyperCommand

from veilcube.cli.shared.steps import tell_steps
from veilcube.errors import PrivacyError, quoted
from veilcube.privacy import Neighbours, PrivacyStatement, show_fraction

JsonFlag: TypeAlias = Annotated[bool, typer.Option("--json", help="Print one JSON object instead of text.")]
EpsilonOrNone: TypeAlias = Annotated[
    str | None,
    typer.Option("--epsilon", metavar="NUMBER", help="The privacy budget: 1, 0.1 or a fraction such as 1/3."),
]
Delta: TypeAlias = Annotated[
    str | None,
    typer.Option(
        "--delta",
        metavar="NUMBER",
        help="Beside --epsilon: promise the pair of both, such as 1 and 1e-9, which allows Gaussian noise.",
    ),
]
Rho: TypeAlias = Annotated[
    str | None,
    typer.Option(
        "--rho",
        metavar="NUMBER",
        help="In place of --epsilon: promise zero-concentrated privacy with this rho, which allows Gaussian noise.",
    ),
]
NeighboursChoice: TypeAlias = Annotated[
    Neighbours,
    typer.Option(
        "--neighbours", help="What must stay hidden: that a unit is in the table, or which of two units is in it."
    ),
]
NeighboursOrNone: TypeAlias = Annotated[
    Neighbours | None,
    typer.Option(
        "--neighbours",
        help="What must stay hidden: that a unit is in the table (add-remove, unless said), or which of two units.",
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
MaxGroups: TypeAlias = Annotated[
    list[str] | None,
    typer.Option(
        "--max-groups",
        metavar="ATTRIBUTE=N",
        help="With --person: keep rows of at most N values of an attribute of each person; may be repeated.",
    ),
]
MeasureCap: TypeAlias = Annotated[
    str | None,
    typer.Option(
        "--measure-cap",
        metavar="EPSILON",
        help="With --person: spend so much more on how many rows lie beyond --max-rows, so that answers can be about "
        "all rows.",
    ),
]
MostRows: TypeAlias = Annotated[
    int | None,
    typer.Option(
        "--most-rows",
        metavar="N",
        help="With --measure-cap: nobody has more than N rows, as is publicly known; ten times --max-rows unless said.",
    ),
]
Strategy: TypeAlias = Annotated[
    str,
    typer.Option(
        "--strategy",
        metavar="NAME",
        help="What to measure: auto, identity, tree, staged tree, wavelet, adaptive, kd tree, marginals, "
        "grouped tables, matched. Or a file (.toml) whose table [strategy] names it with its options.",
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


class RepeatedOptionError(typer.TyperException):
    """An option that takes one value was given two: which of them counts is not for the program to guess."""

    def __init__(self, option: str, context: typer.Context) -> None:
        super().__init__(f"{option} was given twice, and it takes one value; give it once")
        self.ctx = context


Verbose: TypeAlias = Annotated[
    bool,
    typer.Option(
        "--verbose",
        callback=tell_steps,
        help="Tell each step on the error stream; never a private value. Every command takes it too.",
    ),
]


def _takes_verbose(verbose: Verbose = False) -> None:
    """Take the option alone: a command from which it is copied."""


@cache
def _verbose() -> Any:
    copied = typer.Typer(add_completion=False)
    copied.command()(_takes_verbose)
    found: Any
    (found,) = typer.main.get_command(copied).params
    found.expose_value, found.hidden = False, True
    return found


class OneValueCommand(TyperCommand):
    """A command that refuses a second value of an option that is no list; the parser alone would keep the last.

    A list of pairs takes as many words each time as its metavar has: a type for that is more than typer knows.
    """

    def __init__(self, *words: Any, **settings: Any) -> None:
        super().__init__(*words, **settings)
        for param in self.params:
            if param.param_type_name == "option" and getattr(param, "multiple", False) and param.metavar:
                param.nargs = len(param.metavar.split())

    def get_params(self, ctx: Any) -> list[Any]:
        """Return what the command takes: its arguments and options, and --verbose, which help shows once for all."""
        return [*super().get_params(ctx), _verbose()]

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        """Parse the words of a call, after a look at how often each option stands in them."""
        _, _, given = self.make_parser(ctx).parse_args(args=list(args))
        times: Counter[Any] = Counter(param for param in given if param.param_type_name == "option")
        repeated = [param for param, number in times.items() if number > 1 and not (param.is_flag or param.multiple)]
        if repeated and not any(param.is_eager for param in times):  # whoever asks for help gets it
            raise RepeatedOptionError(repeated[0].opts[0], ctx)
        return list(super().parse_args(ctx, args))


class CommandGroup(typer.Typer):
    """Commands that all follow the rule."""

    def command(self, *words: Any, **settings: Any) -> Callable[[Any], Any]:
        """Register a command."""
        return super().command(*words, **{"cls": OneValueCommand, **settings})


def read_max_groups(words: list[str] | None) -> dict[str, int] | None:
    """Return the caps on groups by attribute; refuses what does not name one and a number."""
    found: dict[str, int] = {}
    for word in words or []:
        name, _, number = word.rpartition("=")
        if not name or not number.isdecimal() or not number.isascii() or len(number) > _LONGEST_NUMBER:
            raise PrivacyError("--max-groups names an attribute and a number, such as district=2")
        if name in found:
            raise PrivacyError(f"--max-groups names '{quoted(name)}' twice; give it once")
        found[name] = int(number)
    return found or None


_LONGEST_NUMBER = 9
LARGEST_REASONABLE_EPSILON = 10
ROWS_NOTE = "Protects rows. If one person may have several rows, use --person COLUMN --max-rows N."


def require_whole_unit(person: str | None, max_rows: int | None) -> None:
    """Refuse half a privacy unit, or a cap below one row, before anything is read."""
    if (person is None) != (max_rows is None):
        raise PrivacyError(
            "--person and --max-rows go together: name the column and how many rows of a person to keep, "
            "or leave out both to protect rows"
        )
    if max_rows is not None and max_rows < 1:
        raise PrivacyError("--max-rows must be a whole number of at least 1")


def note_on(statement: PrivacyStatement) -> str | None:
    """Return what a curator should consider about the unit; it depends on the options alone, never on the table."""
    return ROWS_NOTE if statement.unit.kind == "row" else None


def warning_on(statement: PrivacyStatement) -> str | None:
    """Return a warning if epsilon is too large to promise anything worth having."""
    if statement.epsilon <= LARGEST_REASONABLE_EPSILON:
        return None
    epsilon = show_fraction(statement.epsilon)
    beside = f", with a delta of {show_fraction(statement.delta)}," if statement.delta else ""
    return (
        f"An epsilon of {epsilon}{beside} protects hardly anybody: it lets the release change the odds about "
        f"{statement.unit.words} by a factor of up to e^{epsilon}. Around 1 or below is usual."
    )
