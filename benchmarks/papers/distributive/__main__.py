"""The command: python -m benchmarks.papers.distributive. What it does stands in the package's description."""

import sys

from benchmarks.papers.distributive.benchmark import main

if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
