"""The exact posterior of a tree of counts under the Pólya-tree prior, with mixture weights learned from the release.

Everything here reads published values only. ``propagate`` makes one upward and one downward pass for given weights;
``learn`` alternates passes with expectation-maximisation of the weights per level (docs/notation.md lists the
symbols).
"""

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import cached_property, partial

import numpy as np
from numpy.typing import NDArray

from veilcube.operators.parallel import THREADS, compiled
from veilcube.posterior.crediting import add_splits, credit_large_counts
from veilcube.posterior.measured_tree import NONE, MeasuredTree
from veilcube.posterior.messages import Law, Nodes, Windows, pass_down, pass_up, plan_windows
from veilcube.posterior.split_law import (
    COMPONENTS,
    READY_ENTRIES,
    SplitLaw,
    component_rows,
    component_shares,
    logarithms,
)

Floats = NDArray[np.float64]
Integers = NDArray[np.int64]

ROUNDS = 3
FIRST_ROOM = 1 << 16
NODES_WORTH_A_THREAD = 16
# Noise of very different scales: the grid has no more than about this many steps in the largest one.
STEPS_IN_A_SCALE = 16
# What a component's weight starts from in each round, in splits seen: keeps weights of rare classes moderate.
PRIOR_SPLITS = 0.5


@dataclass(frozen=True, eq=False)
class Belief:
    """The posterior of every node's count: ``chances`` of the grid points in its window, in units of ``step``."""

    measured: MeasuredTree
    law: SplitLaw
    step: float
    windows: Windows
    messages: Floats
    norms: Floats
    chances: Floats

    @cached_property
    def means(self) -> Floats:
        """The posterior mean count of every node."""
        means = np.empty(self.windows.start.size)
        _means(self.windows, self.chances, self.step, means)
        return means

    def cells(self) -> Floats:
        """Return the posterior mean of every cell, flat in the cube's order; below a leaf it is spread evenly."""
        tree, leaves = self.measured.tree, self.measured.leaves
        starts, ends = self.measured.spans()
        in_order, sizes = np.argsort(starts[leaves]), (ends - starts)[leaves]
        cells = np.empty(tree.cells)
        cells[tree.order] = np.repeat((self.means[leaves] / sizes)[in_order], sizes[in_order])
        return cells


def grid_step(measured: MeasuredTree) -> float:
    """Return the step of the grid of counts: the smallest noise scale, unless others are far larger; at least 1."""
    return max(1.0, float(np.floor(max(measured.scales.min(), measured.scales.max() / STEPS_IN_A_SCALE))))


def propagate(measured: MeasuredTree, law: SplitLaw) -> Belief:
    """Return the posterior under a given split law; every leaf must have been measured."""
    if not measured.is_covered:
        raise ValueError("a node that nobody measured, alone or in parts, has no posterior")
    step = grid_step(measured)
    nodes = kernel_nodes(measured)
    windows = Windows(*(np.zeros(measured.left.size, dtype=np.int64) for _ in range(3)))
    tables = Law(law.weights, law.rows, law.shares, logarithms())
    messages, norms, used = np.empty(FIRST_ROOM), np.empty(FIRST_ROOM), 0
    for group in measured.heights:
        plan_windows(group, nodes, windows, step)
        lengths = windows.length[group]
        windows.offset[group] = used + np.cumsum(lengths) - lengths
        used += int(lengths.sum())
        messages, norms = _with_room(messages, used), _with_room(norms, used)
        _share_out(group, partial(_pass_up, nodes, windows, step, tables, messages, norms))
    chances = np.zeros(used)
    root = slice(windows.offset[0], windows.offset[0] + windows.length[0])
    chances[root] = messages[root] / messages[root].sum()
    for group in reversed(measured.heights):
        _share_out(group, lambda part: pass_down(part, nodes, windows, tables, messages, norms, chances))
    return Belief(measured, law, step, windows, messages, norms, chances)


def learn(measured: MeasuredTree, rounds: int = ROUNDS) -> Belief:
    """Return the posterior with mixture weights per level learned by expectation-maximisation."""
    belief = propagate(measured, SplitLaw.even(measured.tree.depth + 1))
    for _ in range(rounds):
        belief = propagate(measured, _updated(belief))
    return belief


def _pass_up(
    nodes: Nodes, windows: Windows, step: float, tables: Law, messages: Floats, norms: Floats, group: Integers
) -> None:
    pass_up(group, nodes, windows, step, tables, messages, norms)


def _updated(belief: Belief) -> SplitLaw:
    """Return the split law whose weights are the components' expected shares of the splits of each level."""
    measured, law = belief.measured, belief.law
    nodes, tables = kernel_nodes(measured), Law(law.weights, law.rows, law.shares, logarithms())
    inner = np.flatnonzero(measured.right != NONE)
    halves = np.array_split(inner[np.argsort(inner % THREADS, kind="stable")], THREADS)
    splits = [np.zeros((law.weights.shape[0], READY_ENTRIES)) for _ in halves]
    credits = [np.zeros_like(law.weights) for _ in halves]

    def look(part: int) -> None:
        shared = (nodes, belief.windows, tables, belief.messages)
        add_splits(halves[part], *shared, belief.norms, belief.chances, splits[part])
        credit_large_counts(halves[part], *shared, belief.chances, component_shares(), credits[part])

    with ThreadPoolExecutor(THREADS) as pool:
        list(pool.map(look, range(THREADS)))
    return SplitLaw.of(_weights(law, np.sum(splits, axis=0), np.sum(credits, axis=0)))


def _weights(law: SplitLaw, splits: Floats, credit: Floats) -> Floats:
    splits[:, 0] = 0.0  # a count of nothing splits in one way only and tells nothing
    ratios = np.divide(splits, law.rows, out=np.zeros_like(splits), where=law.rows > 0)
    credit += law.weights * (ratios @ component_rows().T)
    credit += PRIOR_SPLITS / COMPONENTS
    weights: Floats = credit / credit.sum(axis=1, keepdims=True)
    return weights


def kernel_nodes(measured: MeasuredTree) -> Nodes:
    """Return the tree as the kernels read it."""
    return Nodes(measured.left, measured.right, measured.level, measured.first, measured.values, measured.scales)


def _with_room(buffer: Floats, needed: int) -> Floats:
    if needed <= buffer.size:
        return buffer
    larger = np.empty(max(needed, 2 * buffer.size))
    larger[: buffer.size] = buffer
    return larger


def _share_out(group: Integers, work: Callable[[Integers], None]) -> None:
    """Do the work of a group of nodes in threads; parts are dealt out finely, since nodes differ in their work."""
    if group.size < NODES_WORTH_A_THREAD or THREADS < 2:
        work(group)
        return
    with ThreadPoolExecutor(THREADS) as pool:
        list(pool.map(work, np.array_split(group, 4 * THREADS)))


@compiled
def _means(windows: Windows, chances: Floats, step: float, means: Floats) -> None:
    for v in range(means.size):
        weighted, total = 0.0, 0.0
        for x in range(windows.length[v]):
            chance = chances[windows.offset[v] + x]
            weighted += chance * (windows.start[v] + x)
            total += chance
        means[v] = step * weighted / total if total > 0 else 0.0
