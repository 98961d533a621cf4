"""Runs the map: python -m benchmarks.honesty"""

from benchmarks.honesty.benchmark import main

if __name__ == "__main__":
    main()
