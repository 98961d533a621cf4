"""``veilcube schema``: check a schema file, or draft one from the columns of a table."""

import shlex
import sys
from pathlib import Path
from typing import Annotated

import typer

from veilcube.cli.shared import (
    CommandGroup,
    Force,
    JsonFlag,
    SchemaFile,
    describe_schema,
    print_json,
    program,
    say,
    say_exactly,
    show_schema,
)
from veilcube.curator import check_table, draft_schema
from veilcube.errors import PrivacyError, SchemaError, TableError
from veilcube.schema import Nominal, Schema, codebook

app = CommandGroup(help="Check a schema file, or draft one for a table.")


@app.command()
def check(
    file: SchemaFile,
    against: Annotated[
        str | None,
        typer.Option("--against", metavar="TABLE", help="Also tell every problem that this table has with the schema."),
    ] = None,
    from_table: Annotated[
        str | None,
        typer.Option("--table", metavar="NAME", help="Which table of a database URL, or a SELECT."),
    ] = None,
    counts: Annotated[
        bool,
        typer.Option(
            "--counts", help="Show how many rows each problem concerns: private, and so on a terminal only, to you."
        ),
    ] = False,
    as_json: JsonFlag = False,
) -> None:
    """Check a schema file and show the cube that it describes, or tell what a table has that does not fit it.

    Nothing is charged: what is told of a table is for whoever holds it, and no output to pass on.
    """
    schema = Schema.from_toml(file)
    if against is None:
        _require_against(from_table is not None, counts)
        _tell_valid(file, schema, as_json)
        return
    _require_terminal(counts, as_json)
    problems = check_table(against, schema, table=from_table)
    if as_json:
        told = [{"attribute": problem.attribute, "problem": problem.words} for problem in problems]
        print_json({"file": str(file), "table": against, "fits": not problems, "problems": told})
        if problems:
            raise typer.Exit(TableError.exit_code)
        return
    for problem in problems:
        rows = f" (rows: {problem.exact_rows:,})" if counts and problem.exact_rows is not None else ""
        say(f"- {problem.attribute}: {problem.words}{rows}")
    if problems:
        what = "1 problem, listed above" if len(problems) == 1 else f"{len(problems)} problems, listed above"
        raise TableError(f"{against} does not fit {file}: {what}; correct the table or the schema and check again")
    say(f"{against} fits {file}: every value has a cell.")


def _require_against(has_table: bool, counts: bool) -> None:
    if has_table or counts:
        raise TableError("--table and --counts are about a table; name it with --against TABLE")


def _require_terminal(counts: bool, as_json: bool) -> None:
    """Refuse counts, which are exact and private, to anything that may keep them."""
    if counts and (as_json or not sys.stdout.isatty()):
        raise PrivacyError(
            "how many rows a problem concerns is private, so that --counts writes to a terminal only; leave it out, or "
            "do not redirect the output and leave --json out"
        )


def _tell_valid(file: Path, schema: Schema, as_json: bool) -> None:
    if as_json:
        print_json({"file": str(file)} | describe_schema(schema))
        return
    show_schema(schema)
    say("", f"{file} is a valid schema: {schema.cells:,} cells.")


@app.command()
def hierarchy(
    file: Annotated[Path, typer.Argument(metavar="CODEBOOK", help="A CSV file with a row for each code.")],
    name: Annotated[str, typer.Option("--name", metavar="NAME", help="What to call the attribute.")] = "code",
    value: Annotated[str, typer.Option("--value", metavar="COLUMN", help="The column of codes.")] = "code",
    parent: Annotated[
        str, typer.Option("--parent", metavar="COLUMN", help="The column of their groups' codes, empty at the top.")
    ] = "parent",
    levels: Annotated[
        str | None,
        typer.Option("--levels", metavar="A,B,...", help="Columns from coarse to fine, where rows hold whole paths."),
    ] = None,
    as_json: JsonFlag = False,
) -> None:
    """Print an attribute of a schema file with the hierarchy of a codebook."""
    columns = None if levels is None else [column.strip() for column in levels.split(",")]
    attribute = Nominal(name, hierarchy=codebook(file, value=value, parent=parent, levels=columns))
    text = Schema([attribute]).to_toml()
    if as_json:
        print_json({"codebook": str(file), "attribute": attribute.to_dict(), "cells": attribute.size, "toml": text})
        return
    say_exactly(text)


@app.command()
def draft(
    table: Annotated[str, typer.Argument(metavar="TABLE", help="A CSV or Parquet file, or a glob of them.")],
    out: Annotated[Path | None, typer.Option("--out", metavar="FILE", help="Where to write the draft.")] = None,
    force: Force = False,
    as_json: JsonFlag = False,
) -> None:
    """Draft a schema from the names and types of a table's columns.

    Bounds and values are left to fill in, from public knowledge: bounds read off private data would leak.
    """
    if out is not None and out.exists() and not force:
        raise SchemaError(f"{out} exists already; choose another name, or pass --force to write over it")
    text = draft_schema(table)
    if out is not None:
        try:
            out.write_text(text, encoding="utf-8")
        except OSError as problem:
            raise SchemaError(f"cannot write the draft to {out}: {problem.strerror}; choose another place") from problem
    if as_json:
        print_json({"table": table, "out": None if out is None else str(out), "toml": text})
    elif out is None:
        say_exactly(text)
    else:
        say(
            f"Wrote {out}. Fill in what each attribute leaves open, or remove the attribute, if it only names a "
            "person; then check it with"
        )
        say_exactly(f"  {program()} schema check {shlex.quote(str(out))}")
