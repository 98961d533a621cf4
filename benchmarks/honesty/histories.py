"""Models fitted to a history and asked new questions: ranges answered in the past, and tables of pairs."""

from collections.abc import Callable, Iterator
from functools import partial
from typing import TypeAlias

import numpy as np

import veilcube as vc
from benchmarks.honesty.questions import Answered, Counts, Question
from veilcube.errors import QueryError, VeilcubeError
from veilcube.operators.base.block_sums import BlockSums

Asking: TypeAlias = Callable[[Question], Answered]

MODELS: dict[str, vc.KernelPCA | vc.MaxEntropy] = {"kernel_pca": vc.KernelPCA(), "max_entropy": vc.MaxEntropy()}
RANGES, PAIRS = "history of ranges", "history of pairs"
HISTORIES = (RANGES, PAIRS)
PAST_QUERIES = 200
# Every past answer cost this part of epsilon.
PART_OF_EPSILON = 0.1
# Of fewer attributes tables of pairs tell everything.
LEAST_ATTRIBUTES = 3


def past_ranges(counts: Counts, schema: vc.Schema, epsilon: float, number: int) -> vc.History:
    """Return random ranges, and the total, answered with Laplace noise; others, and other noise, for each number."""
    drawn, scale = vc.Workload.random_ranges(schema, PAST_QUERIES, seed=number), 1 / (PART_OF_EPSILON * epsilon)
    low, high = drawn.low.copy(), drawn.high.copy()
    low[0], high[0] = 0, np.array(counts.shape) - 1  # maximum entropy must know how many rows there are
    noise = np.random.default_rng([number, PAST_QUERIES]).laplace(0, scale, PAST_QUERIES)
    past, exact = vc.Workload.ranges(schema, low, high), BlockSums(counts.astype(np.float64))(low, high)
    return vc.History(schema, past, exact + noise, np.full(PAST_QUERIES, 2 * scale**2))


def models_of(history: vc.History | vc.Release, estimators: tuple[str, ...]) -> Iterator[tuple[str, Asking]]:
    """Yield each model that can be fitted, as something that answers questions."""
    for name in estimators:
        if name in MODELS:
            try:
                model = MODELS[name].fit(history)
            except VeilcubeError:
                continue
            yield name, partial(_asked, model.answer)


def _asked(answer: Callable[[vc.Workload], vc.Answers], question: Question) -> Answered:
    if question.workload is None:
        raise QueryError("models from history answer counts only")
    answers = answer(question.workload)
    return answers.value, answers.low, answers.high
