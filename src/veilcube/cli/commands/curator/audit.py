"""``veilcube audit``: look for tables by which a mechanism, ours or one of your own, breaks its promise."""

import importlib.util
import json
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Annotated, Any

import typer

from veilcube.auditing import OURS, audit as audited
from veilcube.cli.shared import (
    Delta,
    EpsilonOrNone,
    Force,
    JsonFlag,
    NeighboursChoice,
    Rho,
    print_json,
    progress_bar,
    require_free,
    say,
    say_exactly,
)
from veilcube.errors import AuditError, quoted
from veilcube.privacy import Neighbours
from veilcube.system import did_you_mean

Mechanism = Callable[..., Any]


def audit(
    mechanism: Annotated[
        str,
        typer.Argument(
            metavar="MECHANISM", help="A function of a list of records, as FILE.py:FUNCTION, or one of ours by name."
        ),
    ],
    epsilon: EpsilonOrNone = None,
    delta: Delta = None,
    rho: Rho = None,
    neighbours: NeighboursChoice = Neighbours.ADD_REMOVE,
    domain: Annotated[
        str | None,
        typer.Option(
            "--domain", metavar="JSON", help="The records, as a JSON list; unset, the list DOMAIN of the file."
        ),
    ] = None,
    max_rows: Annotated[
        int, typer.Option("--max-rows", metavar="N", help="Of one of ours: how many rows a person has at most.")
    ] = 1,
    records: Annotated[int, typer.Option("--records", metavar="N", help="How many records a table has at most.")] = 4,
    trials: Annotated[
        int, typer.Option("--trials", metavar="N", help="How often each of the two tables that are tested last is run.")
    ] = 100_000,
    html: Annotated[Path | None, typer.Option("--html", metavar="FILE", help="Write the report as a page.")] = None,
    force: Force = False,
    as_json: JsonFlag = False,
) -> None:
    """Look for tables by which a mechanism breaks its promise.

    Output laws are listed where they can be, runs are replayed on neighbouring tables, and many runs are compared. The
    command ends with 12 if the promise is broken. The function is run, so audit no file that you would not run.
    """
    if html is not None:
        require_free(html, overwrite=force)
    function, records_of_file = (mechanism, None) if mechanism in OURS else _load(mechanism)
    listed = records_of_file if domain is None else _read_domain(domain)
    with progress_bar("Auditing", hidden=as_json) as advance:
        report = audited(
            function,
            listed,
            epsilon,
            delta,
            str(neighbours),
            records,
            trials,
            rho=rho,
            max_rows=max_rows,
            progress=advance,
        )
    if html is not None:
        report.save(html)
    if as_json:
        print_json(report.to_dict())
    else:
        say_exactly(str(report))
        if html is not None:
            say(f"Wrote {html}.")
    if not report.passed:
        raise typer.Exit(AuditError.exit_code)


def _read_domain(text: str) -> Sequence[object]:
    try:
        found = json.loads(text)
    except ValueError:
        found = None
    if not isinstance(found, list):
        raise AuditError("""--domain must be a list in JSON, such as --domain '["a", "b"]'""")
    return [tuple(one) if isinstance(one, list) else one for one in found]


def _load(words: str) -> tuple[Mechanism, Sequence[object] | None]:
    """Return a function from a file, and the records that the file lists."""
    file, _, name = words.rpartition(":")
    path = Path(file)
    if not file or path.suffix != ".py":
        raise AuditError(
            f"'{quoted(words)}' is no FILE.py:FUNCTION, such as mine.py:noisy_count; {did_you_mean(words, OURS)}the "
            f"mechanisms of veilcube are {', '.join(OURS)}"
        )
    if not path.is_file():
        raise AuditError(f"there is no file {quoted(file)}; name the file that the function is in")
    spec = importlib.util.spec_from_file_location(path.stem, path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[path.stem] = module
    sys.path.insert(0, str(path.parent.resolve()))
    try:
        spec.loader.exec_module(module)
    except Exception as problem:  # whatever the file does is its own affair
        raise AuditError(f"{quoted(file)} cannot be loaded ({type(problem).__name__}); correct it first") from problem
    finally:
        sys.path.pop(0)
    function = getattr(module, name, None)
    if not callable(function):
        raise AuditError(f"{quoted(file)} has no function '{quoted(name)}'; name one that it has")
    return function, getattr(module, "DOMAIN", None)
