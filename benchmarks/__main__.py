"""Runs every benchmark, each beside its bar: python -m benchmarks"""

from benchmarks import counting, matched, noise, planning, queries, release_format, tree_release


def main() -> None:
    for benchmark in (noise, counting, queries, release_format, tree_release, planning, matched):
        print(f"\n== {benchmark.__name__}")
        benchmark.main()


if __name__ == "__main__":
    main()
