"""Runs every benchmark, each beside its bar: python -m benchmarks"""

from benchmarks import counting, matched, noise, planning, posterior, queries, release_format, tree_release
from benchmarks.papers.ispe import benchmark as ispe
from benchmarks.papers.privelet import benchmark as privelet


def main() -> None:
    ours = (noise, counting, queries, release_format, tree_release, planning, matched, posterior)
    for benchmark in (*ours, privelet, ispe):
        print(f"\n== {benchmark.__name__}")
        benchmark.main()


if __name__ == "__main__":
    main()
