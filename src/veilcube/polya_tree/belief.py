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

from veilcube.operators import SIDES
from veilcube.polya_tree.crediting import add_splits, credit_large_counts
from veilcube.polya_tree.measured_tree import NONE, MeasuredTree, thinned
from veilcube.polya_tree.messages import Grid, Nodes, Windows, pass_down, pass_up, plan_windows
from veilcube.polya_tree.split_law import (
    ALL_LEFT,
    ALL_RIGHT,
    COMPONENTS,
    READY_ENTRIES,
    Law,
    SplitLaw,
    component_knots,
    component_rows,
    logarithms,
    matched,
)
from veilcube.system import THREADS, Floats, Integers, compiled

ROUNDS = 6
# The first rounds look at about so many nodes of each measured level only; the last one at the whole tree.
NODES_TO_LEARN_FROM, WHOLE_ROUNDS = 96, 1
# Which part of a message's peak is negligible, in the end and while weights are learned, which need no far tails.
EXACT, ROUGH = 1e-5, 1e-3
FIRST_ROOM = 1 << 16
NODES_WORTH_A_THREAD = 128
# Noise of very different scales: the grid has no more than about this many steps in the largest one.
STEPS_IN_A_SCALE = 96
MANY_NODES, FEW_NODES, COARSER = 2048, 0.05, 3.0
# What a class's weights are drawn to in each round, in splits seen: those of its whole level, and those to equal ones.
PRIOR_SPLITS = 0.5
# The same for a level, in splits of the next finer level that was seen: coarse levels have few nodes to learn from.
FINER_SPLITS = 5.0
# All rounds but the last go further than expectation-maximisation would, which is slow near the borders of the simplex.
STRIDE = 2.0
LARGEST_STRIDE = 1e3
LEAST_WEIGHT = 1e-6


@dataclass(frozen=True, eq=False)
class Belief:
    """The posterior of every node's count: ``chances`` are probabilities of the grid points in its window."""

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
        return self._moments(1)

    @cached_property
    def sizes(self) -> Floats:
        """The root of the posterior mean of every node's squared count: what leaving it out or spreading it costs."""
        return np.sqrt(self._moments(2))

    def _moments(self, power: int) -> Floats:
        moments = np.empty(self.windows.start.size)
        _fill_moments(self.windows, self.chances, self.step, power, moments)
        return moments

    @cached_property
    def cell_shares(self) -> Floats:
        """The share of each cell, in the order of the tree, in the mean count of the last measured node above it.

        Below a node nothing was measured: its halves get the mean shares that the split law learned at like places.
        """
        tree, shares = self.measured.tree, np.ones(1)
        left_shares = self.law.left_shares
        for level in range(tree.depth, 0, -1):
            parents = tree.ancestors(level - 1, level)
            is_left = (tree.positions[tree.starts(level - 1)] >> (level - 1)) & 1 == 0
            has_sibling = np.bincount(parents)[parents] == 2
            of_left = left_shares[tree.kinds(level)][parents]
            factor = np.where(has_sibling, np.where(is_left, of_left, 1.0 - of_left), 1.0)
            is_measured = self.measured.node_at(level - 1) != NONE
            shares = np.where(is_measured, 1.0, shares[parents] * factor)
        return shares

    def cells(self) -> Floats:
        """Return the posterior mean of every cell, flat in the cube's order."""
        cells: Floats = self.spread(self.means[None])[0]
        return cells

    def spread(self, counts: Floats) -> Floats:
        """Return counts of nodes, (rows, nodes), as cells, (rows, cells): those of leaves by the cells' shares."""
        cells = np.empty((counts.shape[0], self.measured.tree.cells))
        cells[:, self.measured.tree.order] = counts[:, self.leaf_of_cells] * self.cell_shares
        return cells

    @cached_property
    def leaf_of_cells(self) -> Integers:
        """The leaf that holds each cell, in the order of the tree."""
        starts, ends = self.measured.spans()
        leaves = self.measured.leaves
        in_order = leaves[np.argsort(starts[leaves])]
        return np.repeat(in_order, (ends - starts)[in_order])

    def cumulative_shares(self) -> Floats:
        """Return the cells' shares added up within each last measured node, in the order of the tree."""
        starts, _ = self.measured.spans()
        first = np.sort(starts[self.measured.leaves])
        upto = np.cumsum(self.cell_shares)
        before = np.concatenate([[0.0], upto])[first]
        sizes = np.diff(np.append(first, upto.size))
        within: Floats = upto - np.repeat(before, sizes)
        return within


def grid_step(measured: MeasuredTree) -> float:
    """Return the step of the grid of counts: the smallest noise scale, unless others are far larger; at least 1.

    A node that was measured several times is as wide as the sharpest of its measurements lets it be.
    """
    sharpest = np.minimum.reduceat(measured.scales, np.unique(measured.first[:-1][np.diff(measured.first) > 0]))
    smallest = float(sharpest.min())
    if sharpest.size >= MANY_NODES:
        # A few sharp nodes among many others would make the grid fine for all.
        smallest = min(COARSER * smallest, float(np.quantile(sharpest, FEW_NODES)))
    return max(1.0, float(np.floor(max(smallest, sharpest.max() / STEPS_IN_A_SCALE))))


def propagate(measured: MeasuredTree, law: SplitLaw) -> Belief:
    """Return the posterior under a given split law; every leaf must have been measured."""
    if not measured.is_covered:
        raise ValueError("a node that nobody measured, alone or in parts, has no posterior")
    with ThreadPoolExecutor(THREADS) as crew:
        return _propagate(measured, law, crew, Grid(grid_step(measured), EXACT))


def _propagate(measured: MeasuredTree, law: SplitLaw, crew: ThreadPoolExecutor, grid: Grid) -> Belief:
    nodes = loop_nodes(measured)
    windows = Windows(*(np.zeros(measured.left.size, dtype=np.int64) for _ in range(3)))
    tables = loop_law(law)
    messages, norms, used = np.empty(FIRST_ROOM), np.empty(FIRST_ROOM), 0
    for group in measured.heights:
        plan_windows(group, nodes, windows, grid)
        lengths = windows.length[group]
        windows.offset[group] = used + np.cumsum(lengths) - lengths
        used += int(lengths.sum())
        messages, norms = _with_room(messages, used), _with_room(norms, used)
        _share_out(crew, group, partial(_pass_up, nodes, windows, grid, tables, messages, norms))
    chances = np.zeros(used)
    root = slice(windows.offset[0], windows.offset[0] + windows.length[0])
    chances[root] = messages[root] / messages[root].sum()
    for group in reversed(measured.heights):
        _share_out(crew, group, lambda part: pass_down(part, nodes, windows, tables, messages, norms, chances))
    return Belief(measured, law, grid.step, windows, messages, norms, chances)


def learn(measured: MeasuredTree, rounds: int = ROUNDS) -> Belief:
    """Return the posterior with mixture weights per level learned by expectation-maximisation."""
    even = SplitLaw.even(measured.tree)
    law, sample = even, thinned(measured, NODES_TO_LEARN_FROM)
    grid = Grid(grid_step(measured), ROUGH)  # the same for a part of the nodes, or its few would need the finest one
    with ThreadPoolExecutor(THREADS) as crew:
        for left in range(rounds - 1, -1, -1):
            belief = _propagate(measured if left < WHOLE_ROUNDS else sample, law, crew, grid)
            weights = _updated(belief, even, crew)
            law = SplitLaw.of(_overshot(law.weights, weights) if left else weights)
    return propagate(measured, law)


def _overshot(before: Floats, after: Floats) -> Floats:
    """Return weights further on in the direction of a step, multiplicatively."""
    ratio = np.clip(after / np.maximum(before, LEAST_WEIGHT**2), 1 / LARGEST_STRIDE, LARGEST_STRIDE)
    weights = np.where(before > 0, before * ratio**STRIDE + LEAST_WEIGHT, 0.0)
    weights /= weights.sum(axis=1, keepdims=True)
    return np.asarray(weights)


def _pass_up(
    nodes: Nodes, windows: Windows, grid: Grid, tables: Law, messages: Floats, norms: Floats, group: Integers
) -> None:
    pass_up(group, nodes, windows, grid, tables, messages, norms)


def _updated(belief: Belief, even: SplitLaw, crew: ThreadPoolExecutor) -> Floats:
    """Return the components' expected shares of the splits of each class."""
    measured, law = belief.measured, belief.law
    nodes, tables = loop_nodes(measured), loop_law(law)
    inner = np.flatnonzero(measured.right != NONE)
    splits = [np.zeros((law.weights.shape[0], READY_ENTRIES)) for _ in range(THREADS)]
    credits = [np.zeros_like(law.weights) for _ in range(THREADS)]

    def look(part: int) -> None:
        # Neighbours in the numbering are alike in their work, so nodes are dealt out to the threads in turn.
        group, shared = inner[part::THREADS], (nodes, belief.windows, tables, belief.messages)
        add_splits(group, *shared, belief.norms, belief.chances, splits[part])
        credit_large_counts(group, *shared, belief.chances, component_knots(), credits[part])

    list(crew.map(look, range(THREADS)))
    return _weights(law, even, np.sum(splits, axis=0), np.sum(credits, axis=0))


def _weights(law: SplitLaw, even: SplitLaw, splits: Floats, credit: Floats) -> Floats:
    splits[:, 0] = 0.0  # a count of nothing splits in one way only and tells nothing
    ratios = np.divide(splits, law.rows, out=np.zeros_like(splits), where=law.rows > 0)
    credit += law.weights * matched(ratios, component_rows())
    of_class = np.repeat(_weights_of_levels(credit, even), SIDES, axis=0)
    is_unseen = credit.sum(axis=1) == 0.0
    of_class[is_unseen, ALL_LEFT] = of_class[is_unseen, ALL_RIGHT] = of_class[is_unseen, ALL_LEFT:].mean(axis=1)
    weights = credit + PRIOR_SPLITS * of_class
    weights /= weights.sum(axis=1, keepdims=True)
    return weights


def _weights_of_levels(credit: Floats, even: SplitLaw) -> Floats:
    """Return each level's weights: what it shows, drawn to equal weights and to those of the level below it."""
    seen = credit.reshape(-1, SIDES, COMPONENTS).sum(axis=1)
    weights: Floats = np.empty(seen.shape)
    finer = np.zeros(COMPONENTS)
    for level, here in enumerate(seen):
        drawn = here + PRIOR_SPLITS * even.weights[0] + FINER_SPLITS * finer
        weights[level] = drawn / drawn.sum()
        if here.sum() >= PRIOR_SPLITS:
            finer = weights[level]
    return weights


def loop_nodes(measured: MeasuredTree) -> Nodes:
    """Return the tree as the kernels read it."""
    measurements = measured.values, measured.scales, measured.is_normal
    return Nodes(measured.left, measured.right, measured.kinds, measured.first, *measurements)


def loop_law(law: SplitLaw) -> Law:
    """Return a split law as the kernels read it."""
    return Law(law.weights, law.rows, law.shares, logarithms())


def _with_room(buffer: Floats, needed: int) -> Floats:
    if needed <= buffer.size:
        return buffer
    larger = np.empty(max(needed, 2 * buffer.size))
    larger[: buffer.size] = buffer
    return larger


def _share_out(crew: ThreadPoolExecutor, group: Integers, work: Callable[[Integers], None]) -> None:
    """Do the work of a group of nodes in threads, of which the calling one is the first.

    Neighbours in the numbering are alike in their work, so nodes are dealt out to the threads in turn.
    """
    if group.size < NODES_WORTH_A_THREAD:
        work(group)
        return
    mine, *theirs = (np.ascontiguousarray(group[part::THREADS]) for part in range(THREADS))
    others = [crew.submit(work, part) for part in theirs]
    work(mine)
    for other in others:
        other.result()  # raises what the thread raised


@compiled
def _fill_moments(windows: Windows, chances: Floats, step: float, power: int, moments: Floats) -> None:
    for v in range(moments.size):
        weighted, total = 0.0, 0.0
        for x in range(windows.length[v]):
            chance = chances[windows.offset[v] + x]
            weighted += chance * float(windows.start[v] + x) ** power
            total += chance
        moments[v] = step**power * weighted / total if total > 0 else 0.0
