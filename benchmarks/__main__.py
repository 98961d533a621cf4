"""Runs every benchmark of the foundation, each beside its bar: python -m benchmarks"""

from benchmarks import counting, noise, queries, release_format


def main() -> None:
    for benchmark in (noise, counting, queries, release_format):
        print(f"\n== {benchmark.__name__}")
        benchmark.main()


if __name__ == "__main__":
    main()
