"""The command: python -m benchmarks.papers.refinement. What it does stands in the package's description."""

import sys

from benchmarks.papers.refinement.benchmark import main

if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
