"""The command: python -m benchmarks.peers.many. What it does stands in the package's description."""

import argparse
import sys
from collections.abc import Sequence
from pathlib import Path

from rich.console import Console

from benchmarks.peers import many
from benchmarks.peers.dpbench.arrays import InputError
from benchmarks.peers.many.comparison import AgainstOthers, AgainstPeers, against_others, against_peers
from benchmarks.peers.many.folder import default_folder, names_of_tables, read_questions, read_table
from benchmarks.peers.many.generated import RECIPES, chosen_recipes, make_questions, make_table
from benchmarks.peers.many.measure import Promise, Result, measure
from benchmarks.peers.many.published import Peers
from benchmarks.peers.many.tables import (
    WIDTH_OF_FILES,
    show_against_peers,
    show_comparisons,
    show_ratios,
    show_strategies,
    show_title,
    write_json,
)
from benchmarks.report import make_console

STRATEGIES = ("auto", "identity", "tree", "marginals")
DEFAULT_DELTA = 1e-9
DEFAULT_RUNS = 2
EPSILON_BESIDE_PEERS = (1.0,)
EPSILONS_OF_GENERATED = (0.1, 1.0, 5.0)
QUESTIONS_OF_GENERATED = 300
MOST_TABLES_OF_GENERATED = 12


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the benchmark; return 2, after one sentence, if what it was given cannot be used."""
    options = _read_options(arguments)
    console = make_console(WIDTH_OF_FILES)
    try:
        _check(options)
        folder = None if options.generated else options.data or default_folder()
        if folder is None:
            _compare_strategies(console, options)
        else:
            _compare_with_peers(console, folder, options)
    except InputError as problem:
        print(problem, file=sys.stderr)
        return 2
    return 0


def _compare_with_peers(console: Console, folder: Path, options: argparse.Namespace) -> None:
    found: list[AgainstPeers] = []
    names = names_of_tables(folder, options.table)
    peers = Peers.read(folder / "peers.csv")
    for name in names:
        table = read_table(folder, name)
        questions = read_questions(folder, table)
        if options.most_tables is not None:
            questions = questions.with_at_most(options.most_tables)
            console.print(f"at most {options.most_tables} tables of each kind: the peers were asked for all of them")
        for promise in _promises(options, EPSILON_BESIDE_PEERS):
            for strategy in options.strategy or STRATEGIES[:1]:
                show_title(console, table, promise, [strategy], options.runs)
                result = measure(table, questions, promise, strategy, options.runs)
                found.append(against_peers(result, peers))
                show_against_peers(console, found[-1])
                # Anew after each, so that a run that is stopped leaves what it found.
                write_json(options.json, "peers", found)
    show_ratios(console, found)


def _compare_strategies(console: Console, options: argparse.Namespace) -> None:
    for name in options.table:
        if name not in RECIPES:
            raise InputError(f"there is no generated table {name}; --table is one of {', '.join(RECIPES)}")
    results: list[Result] = []
    found: list[AgainstOthers] = []
    for name in chosen_recipes(options.table):
        table = make_table(name, options.rows)
        questions = make_questions(table, options.questions)
        questions = questions.with_at_most(options.most_tables or MOST_TABLES_OF_GENERATED)
        for promise in _promises(options, EPSILONS_OF_GENERATED):
            strategies = options.strategy or STRATEGIES
            show_title(console, table, promise, strategies, options.runs)
            those = [measure(table, questions, promise, strategy, options.runs) for strategy in strategies]
            results += those
            found.append(against_others(those))
            show_strategies(console, those)
            write_json(options.json, "generated", results, found)
    show_comparisons(console, found)


def _promises(options: argparse.Namespace, epsilons: Sequence[float]) -> list[Promise]:
    delta = None if options.pure else options.delta
    return [Promise(epsilon, delta) for epsilon in options.epsilon or epsilons]


def _check(options: argparse.Namespace) -> None:
    for name in ("runs", "rows", "questions", "most_tables"):
        value = getattr(options, name)
        if value is not None and value < 1:
            raise InputError(f"--{name.replace('_', '-')} is {value}, but at least 1 is needed")


def _read_options(arguments: Sequence[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks.peers.many",
        description=many.__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    add = parser.add_argument
    form = parser.add_mutually_exclusive_group()
    form.add_argument("--data", type=Path, metavar="DIR", help="the folder of tables, questions and peers.csv")
    form.add_argument("--generated", action="store_true", help="tables that are made here, even if there is a folder")
    add("--table", action="append", default=[], metavar="NAME", help="may be repeated (default all)")
    add("--epsilon", type=float, action="append", help="may be repeated (default 1; 0.1, 1 and 5 if generated)")
    promise = parser.add_mutually_exclusive_group()
    promise.add_argument("--delta", type=float, default=DEFAULT_DELTA, help="default 1e-9")
    promise.add_argument("--pure", action="store_true", help="promise no delta; peers keep theirs")
    add("--strategy", choices=STRATEGIES, action="append", help="may be repeated (default auto; all if generated)")
    add("--runs", type=int, default=DEFAULT_RUNS, help="releases of each table (default 2)")
    add("--most-tables", type=int, metavar="N", help="ask for at most N tables of each kind (12 if generated)")
    add("--rows", type=int, metavar="N", help="rows of every generated table (default 50,000; rich 1.4 million)")
    add("--questions", type=int, default=QUESTIONS_OF_GENERATED, help="conjunctions of each kind, generated (300)")
    add("--json", type=Path, metavar="FILE", help="write all figures")
    return parser.parse_args(arguments)


if __name__ == "__main__":
    sys.exit(main())
