"""A cube refined with many known counts or inequalities, in a process of its own, as one line of JSON.

Run: python -m benchmarks.papers.refinement.large STRATEGY 100,100,100 10000 equal
"""

import json
import resource
import sys
import time
from collections.abc import Mapping, Sequence

import numpy as np
from numpy.typing import NDArray

import veilcube as vc
from veilcube.operators.base.block_sums import BlockSums
from veilcube.planner import Strategy

STRATEGIES: Mapping[str, Strategy] = {
    "identity": vc.Identity(),
    "tree": vc.Tree(refine=False),
    "wavelet": vc.Wavelet(),
    "adaptive": vc.Adaptive(),
}
QUESTIONS = 1_000


def main(arguments: Sequence[str]) -> int:
    name, sizes, facts, kind = arguments
    schema = vc.Schema([vc.Ordinal(f"axis{at}", 0, int(size) - 1) for at, size in enumerate(sizes.split(","))])
    counts = np.random.default_rng(0).integers(0, 5, schema.shape)
    release = vc.release(vc.Cube(schema, counts), epsilon=1.0, strategy=STRATEGIES[name])
    known = vc.Workload.random_ranges(schema, int(facts), seed=1)
    exact = BlockSums(counts)(known.low, known.high)
    started, worked = time.perf_counter(), time.process_time()
    if kind == "equal":
        refined = vc.refine(release, B=known, c=exact)
    else:
        refined = vc.refine(release, _inequalities(known, exact))
    refining, processor = time.perf_counter() - started, time.process_time() - worked
    asked = vc.Workload.random_ranges(schema, QUESTIONS, seed=2)
    started = time.perf_counter()
    refined.answer(asked)
    answering = time.perf_counter() - started
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024
    print(json.dumps({"refining": refining, "processor": processor, "answering": answering, "peak": peak}))
    return 0


def _inequalities(known: vc.Workload, exact: NDArray[np.int64]) -> list[str]:
    """Return a true sentence about each range: at most, or at least, so many rows, by turns."""
    sentences = []
    for row, (low, high, count) in enumerate(zip(known.low.tolist(), known.high.tolist(), exact.tolist(), strict=True)):
        ends = zip(known.schema.names, low, high, strict=True)
        condition = " AND ".join(f"{name} BETWEEN {first} AND {last}" for name, first, last in ends)
        sentences.append(f"count({condition}) {'<=' if row % 2 else '>='} {count}")
    return sentences


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
