"""A census from Parquet to a release by one command: its memory, its file, and the queries that the file answers."""

import json
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

import veilcube as vc
from benchmarks.papers.privelet import peak
from benchmarks.papers.privelet.census import Census
from benchmarks.papers.privelet.scaling import best_of
from benchmarks.papers.privelet.verdict import Verdict

GIGABYTE = 10**9
MEMORY_BAR = 4.0
QUERIES_BAR = 100_000


@dataclass(frozen=True)
class CommandRun:
    """What the command took and made, and how fast its release answers."""

    census: str
    seconds: float
    peak_bytes: int
    file_bytes: int
    first_answer_seconds: float
    queries_per_second: float


def run_command(census: Census, folder: Path, queries: int) -> CommandRun:
    """Write the table, release it by the command line, and question the file; what is large is removed again."""
    table, schema, out = folder / "census.parquet", folder / "census.toml", folder / "census.veil"
    census.write_parquet(table)
    schema.write_text(census.schema.to_toml(), encoding="utf-8")
    words = ["release", str(table), "--schema", str(schema), "--strategy", "wavelet", "--epsilon", "1"]
    command = [sys.executable, peak.__file__, sys.executable, "-m", "veilcube.cli", *words, "--out", str(out)]
    try:
        facts = json.loads(subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True).stdout)
        first, best = question(vc.open(out), queries)
        size = out.stat().st_size
    finally:
        table.unlink(missing_ok=True)
        out.unlink(missing_ok=True)
    return CommandRun(census.name, facts["seconds"], facts["peak"], size, first, queries / best)


def question(release: vc.Release, queries: int) -> tuple[float, float]:
    """Return the seconds of one first query, which estimates all cells, and of many after it, the best of three."""
    one, many = (vc.Workload.random_ranges(release.schema, count, seed=1) for count in (1, queries))
    first, _ = best_of(lambda: release.answer(one), rounds=1)
    best, _ = best_of(lambda: release.answer(many))
    return first, best


def judge_command(run: CommandRun) -> list[Verdict]:
    """Return its figures with their bars."""
    return [
        Verdict(
            "command",
            f"{run.census}: peak memory of `veilcube release --strategy wavelet`",
            run.peak_bytes / GIGABYTE,
            "GB",
            high=MEMORY_BAR,
            note=f"{run.seconds:.1f} s in all",
        ),
        Verdict("command", f"{run.census}: size of the release file", run.file_bytes / GIGABYTE, "GB"),
        Verdict(
            "command",
            f"{run.census}: queries of four attributes with intervals",
            run.queries_per_second,
            "a second",
            low=QUERIES_BAR,
            note=f"after one first query of {run.first_answer_seconds:.1f} s",
        ),
    ]
