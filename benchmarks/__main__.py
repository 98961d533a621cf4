"""Runs every benchmark, each beside its bar: python -m benchmarks"""

from benchmarks import (
    counting,
    explore,
    joint_noise,
    matched,
    noise,
    planning,
    posterior,
    queries,
    release_format,
    tree_release,
    wide_tables,
    zcdp,
)
from benchmarks.papers.distributive import benchmark as distributive
from benchmarks.papers.history import benchmark as history
from benchmarks.papers.ispe import benchmark as ispe
from benchmarks.papers.privelet import benchmark as privelet
from benchmarks.papers.refinement import benchmark as refinement


def main() -> None:
    ours = (
        noise,
        counting,
        queries,
        release_format,
        tree_release,
        planning,
        matched,
        joint_noise,
        posterior,
        wide_tables,
        zcdp,
        explore,
    )
    for benchmark in (*ours, privelet, ispe, distributive, history, refinement):
        print(f"\n== {benchmark.__name__}")
        benchmark.main()


if __name__ == "__main__":
    main()
