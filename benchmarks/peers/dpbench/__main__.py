"""The command: python -m benchmarks.peers.dpbench --data DIR. What it does stands in the package's description."""

import argparse
import sys
from collections.abc import Sequence
from pathlib import Path

import veilcube as vc
from benchmarks.peers import dpbench
from benchmarks.peers.dpbench.arms import ARMS, DEFAULT, IDENTITY, LEAST_SQUARES, Arm
from benchmarks.peers.dpbench.arrays import InputError
from benchmarks.peers.dpbench.measure import Contest, Missing, Result
from benchmarks.peers.dpbench.plot import write_plots
from benchmarks.peers.dpbench.summary import judge, summarise
from benchmarks.peers.dpbench.tables import WIDTH_OF_FILES, show_results, show_summaries, show_verdicts
from benchmarks.peers.dpbench.tasks import TASKS, Task, build_tasks
from benchmarks.report import make_console, write_csv

DEFAULT_OUT = Path("benchmarks/results/dpbench")
DEFAULT_EPSILONS = (0.1, 1.0)
DEFAULT_TRIALS = 10


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the benchmark; return 2, after one sentence, if what it was given cannot be used."""
    options = _read_options(arguments)
    try:
        _run(options)
    except (InputError, vc.VeilcubeError) as problem:
        print(problem, file=sys.stderr)
        return 2
    return 0


def _run(options: argparse.Namespace) -> None:
    if options.trials < 1:
        raise InputError(f"--trials is {options.trials}, but at least 1 trial is needed; 10 is usual")
    tasks = build_tasks(options.data, options.adult, options.only)
    out = _make_folder(options.out)
    console = make_console(WIDTH_OF_FILES)
    results: list[Result] = []
    missing: list[Missing] = []
    for epsilon in options.epsilon or DEFAULT_EPSILONS:
        for task in tasks:
            console.print(f"{task.title}, epsilon {epsilon:g}: arrays {len(task.arrays)}, trials {options.trials}")
            contest = Contest.prepare(task, epsilon, _chosen_arms(task, options.arm))
            missing += contest.missing
            for found in contest.run(options.trials):
                results += found
                # Anew after each array, so that a run that is stopped leaves what it found.
                write_csv(out / "results.csv", results)
    summaries = summarise(results)
    write_csv(out / "summary.csv", summaries)
    show_results(console, results)
    show_summaries(console, summaries, missing)
    show_verdicts(console, judge(results))
    drawn = write_plots(results, out)
    written = [out / "results.csv", out / "summary.csv", *drawn]
    console.print(f"written: {', '.join(map(str, written))}")
    if not drawn:
        console.print("no plot was drawn, for Altair is not installed; run pip install 'veilcube[report]'")


def _read_options(arguments: Sequence[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks.peers.dpbench",
        description=dpbench.__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("--data", type=Path, metavar="DIR", help="the folder that holds 1D/*.npy and 2D/*.npy")
    parser.add_argument("--adult", type=Path, metavar="FILE", help="a 64 x 32 x 16 x 8 .npy cube for 4d, not synthetic")
    parser.add_argument("--trials", type=int, default=DEFAULT_TRIALS, help="releases of each array (default 10)")
    parser.add_argument("--epsilon", type=float, action="append", help="may be repeated (default 0.1 and 1)")
    parser.add_argument("--only", choices=TASKS, action="append", help="may be repeated (default all)")
    parser.add_argument(
        "--arm", choices=[arm.name for arm in ARMS], action="append", help="beside auto; may be repeated (default all)"
    )
    parser.add_argument("--out", type=Path, default=DEFAULT_OUT, metavar="DIR", help=f"default {DEFAULT_OUT}")
    options = parser.parse_args(arguments)
    options.only = options.only or []
    return options


def _chosen_arms(task: Task, names: Sequence[str] | None) -> tuple[Arm, ...]:
    """Return the arms that were asked for, with those that the bars of the task compare."""
    needed = (DEFAULT, IDENTITY, LEAST_SQUARES) if task.name == "4d" else (DEFAULT,)
    return tuple(arm for arm in ARMS if names is None or arm in needed or arm.name in names)


def _make_folder(path: Path) -> Path:
    try:
        path.mkdir(parents=True, exist_ok=True)
    except OSError as problem:
        raise InputError(
            f"the folder {path} cannot be made: {problem.strerror}; name another one by --out"
        ) from problem
    return path


if __name__ == "__main__":
    sys.exit(main())
