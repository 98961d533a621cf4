"""``veilcube schema``: check a schema file, or draft one from the columns of a table."""

import shlex
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
from veilcube.curator import draft_schema
from veilcube.errors import SchemaError
from veilcube.schema import Schema

app = CommandGroup(help="Check a schema file, or draft one for a table.")


@app.command()
def check(file: SchemaFile, as_json: JsonFlag = False) -> None:
    """Check a schema file and show the cube that it describes."""
    schema = Schema.from_toml(file)
    if as_json:
        print_json({"file": str(file)} | describe_schema(schema))
        return
    show_schema(schema)
    say("", f"{file} is a valid schema: {schema.cells:,} cells.")


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
