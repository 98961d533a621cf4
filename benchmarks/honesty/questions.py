"""What is asked of every release: kinds of questions with their true answers, all but one asked without looking."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

import veilcube as vc
from veilcube.operators.base.block_sums import BlockSums

Floats: TypeAlias = NDArray[np.float64]
Counts: TypeAlias = NDArray[np.int64]
# Values, low ends and high ends.
Answered: TypeAlias = tuple[Floats, Floats, Floats]

QUERIES = 200
PICKED = "picked cells"
TOTAL = "total"


@dataclass(frozen=True)
class Question:
    """Some questions of one kind, with their true answers; as a ``workload`` where they count, for models."""

    kind: str
    truth: Floats
    ask: Callable[[vc.Release, str], Answered]
    workload: vc.Workload | None = None


def schema_of(shape: tuple[int, ...]) -> vc.Schema:
    """Return a schema of ordinal attributes a, b, c, ... of this shape."""
    return vc.Schema([vc.Ordinal("abcd"[axis], 0, size - 1) for axis, size in enumerate(shape)])


def questions_about(counts: Counts, seed: int = 7) -> Iterator[Question]:
    """Return all questions about a table."""
    schema, random = schema_of(counts.shape), np.random.default_rng(seed)
    for kind, (low, high) in _blocks(counts, random).items():
        yield _about_blocks(kind, counts, vc.Workload.ranges(schema, low, high))
    for axis, name in enumerate(schema.names):
        others = tuple(other for other in range(counts.ndim) if other != axis)
        yield from _about_axis(schema, counts.sum(axis=others), name)


def _blocks(counts: Counts, random: np.random.Generator) -> dict[str, tuple[Counts, Counts]]:
    shape = np.array(counts.shape)
    zeros = np.zeros((QUERIES, counts.ndim), dtype=np.int64)
    ends = np.sort(random.integers(0, shape, (2, QUERIES, counts.ndim)), axis=0)
    small = np.minimum(ends[0] + random.integers(0, np.maximum(shape // 8, 1), ends[0].shape), shape - 1)
    slab_low, slab_high = zeros.copy(), np.broadcast_to(shape - 1, zeros.shape).copy()
    axes = random.integers(0, counts.ndim, QUERIES)
    rows = np.arange(QUERIES)
    slab_low[rows, axes], slab_high[rows, axes] = ends[0][rows, axes], ends[1][rows, axes]
    cells = random.integers(0, shape, (QUERIES, counts.ndim))
    blocks = {
        TOTAL: (zeros[:1], (shape - 1)[None]),
        "prefixes": (zeros, random.integers(0, shape, (QUERIES, counts.ndim))),
        "boxes": (ends[0], ends[1]),
        "small boxes": (ends[0], small),
        "slabs": (slab_low, slab_high),
        "cells": (cells, cells),
    }
    picked = _standing_out(counts)
    if picked.size:
        blocks[PICKED] = (picked, picked)
    return blocks


def _standing_out(counts: Counts) -> Counts:
    """Return the cells that differ most from the mean of their neighbours, by the truth: at most 2% of all."""
    padded = np.pad(counts.astype(np.float64), 1, mode="edge")
    inner = tuple(slice(1, -1) for _ in counts.shape)
    around = np.mean([np.roll(padded, step, axis)[inner] for axis in range(counts.ndim) for step in (-1, 1)], axis=0)
    apart = np.abs(counts - around)
    most = min(QUERIES, max(counts.size // 50, 1))
    chosen = np.argsort(-apart, axis=None, kind="stable")[:most]
    chosen = chosen[apart.ravel()[chosen] > 5]
    return np.stack(np.unravel_index(chosen, counts.shape), axis=1).astype(np.int64)


def _about_blocks(kind: str, counts: Counts, workload: vc.Workload) -> Question:
    def ask(release: vc.Release, estimator: str) -> Answered:
        answers = release.answer(workload, estimator=estimator)
        return answers.value, answers.low, answers.high

    return Question(kind, BlockSums(counts.astype(np.float64))(workload.low, workload.high), ask, workload)


def _about_axis(schema: vc.Schema, margin: Counts, name: str) -> Iterator[Question]:
    cells = np.arange(margin.size)

    def marginal(release: vc.Release, estimator: str) -> Answered:
        answers = release.marginal(name, estimator=estimator)
        return answers.value.ravel(), answers.low.ravel(), answers.high.ravel()

    def cdf(release: vc.Release, estimator: str) -> Answered:
        answers = release.cdf(name, estimator=estimator)
        return answers.value.ravel(), answers.low.ravel(), answers.high.ravel()

    def single(statistic: str) -> Callable[[vc.Release, str], Answered]:
        def ask(release: vc.Release, estimator: str) -> Answered:
            answer = getattr(release, statistic)(name, estimator=estimator)
            return np.array([answer.value]), np.array([answer.low]), np.array([answer.high])

        return ask

    groups = vc.Workload(schema, [{name: (cell, cell)} for cell in cells.tolist()])
    yield Question("marginals", margin.astype(np.float64), marginal, groups)
    yield Question("sums", np.array([float((cells * margin).sum())]), single("sum"))
    if margin.sum():
        yield Question("means", np.array([(cells * margin).sum() / margin.sum()]), single("mean"))
        yield Question("cdf", np.cumsum(margin) / margin.sum(), cdf)
