"""Exact variances of ranges under a weighted tree of one attribute, with their gradient, compiled.

Least squares on a tree, from the cells up. Below a node, t is the node's total and q the part of the query inside it;
V = Var(t), a = Cov(q, t) and s = Var(q) are those of least squares from the measurements below and at the node. What
lies below one child is independent of what lies below another, so S = Σ s, A = Σ a and W = Σ V come from the children;
measuring t once more with precision p (θ², where θ is the weight) updates them by the rule for one more observation:

    V = W / D,   a = A / D,   s = S - p A² / D,   D = 1 + p W.

At a cell V = a = s = 1 / p. All of it is differentiated along with respect to the θ of each level. A node that has the
same cells as its only child is measured once, at the child, with the sum of both weights. Nodes with equal subtrees
form one class and V is kept for each class, so a tree over millions of cells costs no more than one over thousands.
"""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from veilcube.system import Floats, Integers, compiled, compiled_inside


class PackedTree(NamedTuple):
    """The classes of nodes of a tree, children before parents, as flat arrays; the last class is the root's.

    Class c is measured with the weights θ_j of ``first[c] <= j < end[c]``, not at all if there are none. Its children
    are, in order, of the classes ``children[child_start[c] : child_start[c + 1]]``; cells have none.
    """

    first: Integers
    end: Integers
    child_start: Integers
    children: Integers


class PackedRanges(NamedTuple):
    """Where ranges begin and end in a tree: arrays of shape (levels, ranges).

    For level k and each range: the class of the node with the first cell of the range, that node's position among its
    siblings, and the same for the last cell; and whether the two are one node.
    """

    left_class: Integers
    left_position: Integers
    right_class: Integers
    right_position: Integers
    together: NDArray[np.bool_]


class RangeMoments(NamedTuple):
    """V of each class, and sums of V over the first children of each class, with the gradients of both."""

    total: Floats
    total_slope: Floats
    running: Floats
    running_slope: Floats


@compiled
def class_moments(tree: PackedTree, theta: Floats) -> RangeMoments:
    """Return the variances of totals; sums over the first i children of c are at ``child_start[c] + c + i``."""
    classes, levels = tree.first.size, theta.size
    total, total_slope = np.zeros(classes), np.zeros((classes, levels))
    running = np.zeros(tree.children.size + classes)
    running_slope = np.zeros((running.size, levels))
    for c in range(classes):
        at = tree.child_start[c] + c
        for x in range(tree.child_start[c], tree.child_start[c + 1]):
            child = tree.children[x]
            running[at + 1] = running[at] + total[child]
            for j in range(levels):
                running_slope[at + 1, j] = running_slope[at, j] + total_slope[child, j]
            at += 1
        weight = 0.0
        for j in range(tree.first[c], tree.end[c]):
            weight += theta[j]
        p, below = weight * weight, running[at]
        is_cell = tree.child_start[c] == tree.child_start[c + 1]
        gain = p if is_cell else 1 + p * below
        total[c] = 1 / p if is_cell else below / gain
        for j in range(levels):
            p_slope = 2 * weight if tree.first[c] <= j < tree.end[c] else 0.0
            lost = p_slope if is_cell else below * below * p_slope - running_slope[at, j]
            total_slope[c, j] = -lost / (gain * gain)
    return RangeMoments(total, total_slope, running, running_slope)


@compiled_inside
def add_children(
    tree: PackedTree, moments: RangeMoments, c: int, begin: int, end: int, sums: Floats, slopes: Floats
) -> None:
    """Add children of class c that lie inside the query whole: there s = a = V."""
    low, high = tree.child_start[c] + c + begin, tree.child_start[c] + c + end
    part = moments.running[high] - moments.running[low]
    sums[0] += part
    sums[1] += part
    for j in range(slopes.shape[1]):
        part = moments.running_slope[high, j] - moments.running_slope[low, j]
        slopes[0, j] += part
        slopes[1, j] += part


@compiled_inside
def measure_node(tree: PackedTree, theta: Floats, moments: RangeMoments, c: int, sums: Floats, slopes: Floats) -> None:
    """Turn S, A of the children into s, a of a node of class c, in place."""
    weight = 0.0
    for j in range(tree.first[c], tree.end[c]):
        weight += theta[j]
    last = tree.child_start[c + 1] + c
    p, below, covariance = weight * weight, moments.running[last], sums[1]
    gain = 1 + p * below
    for j in range(theta.size):
        p_slope = 2 * weight if tree.first[c] <= j < tree.end[c] else 0.0
        gain_slope = p_slope * below + p * moments.running_slope[last, j]
        lost = 2 * p * slopes[1, j] + covariance * (p_slope - p * gain_slope / gain)
        slopes[0, j] -= covariance * lost / gain
        slopes[1, j] = (slopes[1, j] - covariance * gain_slope / gain) / gain
    sums[0] -= p * covariance * covariance / gain
    sums[1] = covariance / gain


@compiled
def range_variances(
    tree: PackedTree, ranges: PackedRanges, theta: Floats, cost: Floats, variances: Floats
) -> tuple[float, Floats]:
    """Fill in the variance of each range; return Σ cost · variance and its gradient with respect to θ.

    A range can cut only the nodes with its first and its last cell; (s, a) of those two are carried upwards.
    """
    levels = theta.size
    moments = class_moments(tree, theta)
    depth, queries = ranges.left_class.shape
    sums, slopes = np.zeros((2, 2)), np.zeros((2, 2, levels))
    value, gradient = 0.0, np.zeros(levels)
    for query in range(queries):
        for side in range(2):
            c = ranges.left_class[depth - 1, query] if side == 0 else ranges.right_class[depth - 1, query]
            sums[side, 0] = sums[side, 1] = moments.total[c]
            for j in range(levels):
                slopes[side, 0, j] = slopes[side, 1, j] = moments.total_slope[c, j]
        for k in range(depth - 2, -1, -1):
            left, right = ranges.left_class[k, query], ranges.right_class[k, query]
            begin, end = ranges.left_position[k + 1, query], ranges.right_position[k + 1, query]
            if not ranges.together[k, query]:
                children = tree.child_start[left + 1] - tree.child_start[left]
                add_children(tree, moments, left, begin + 1, children, sums[0], slopes[0])
                add_children(tree, moments, right, 0, end, sums[1], slopes[1])
                measure_node(tree, theta, moments, left, sums[0], slopes[0])
                measure_node(tree, theta, moments, right, sums[1], slopes[1])
                continue
            if not ranges.together[k + 1, query]:
                for i in range(2):
                    sums[0, i] += sums[1, i]
                    for j in range(levels):
                        slopes[0, i, j] += slopes[1, i, j]
                add_children(tree, moments, left, begin + 1, end, sums[0], slopes[0])
            measure_node(tree, theta, moments, left, sums[0], slopes[0])
        variances[query] = sums[0, 0]
        value += cost[query] * sums[0, 0]
        for j in range(levels):
            gradient[j] += cost[query] * slopes[0, 0, j]
    return value, gradient
