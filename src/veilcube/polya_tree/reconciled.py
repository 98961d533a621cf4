"""The posterior reconciled with least squares: means, and draws of their errors, that do not trust the prior blindly.

A prior that halves are alike bends slopes, and sums over many cells that err alike are then off by far more than the
posterior believes. Least squares errs by noise alone. So in the Haar transform of the cube, whose bands are kinds of
questions, the part of their difference that is bias is estimated; it is added to the posterior means, and what remains
unknown of it to the draws of their errors. Cells may thus come out a little below zero: cutting them there would bias
every sum of them.

Let u be a least-squares value with error of variance V_u, and p its posterior mean with the posterior's variance V_p.
If the prior suits the data, p errs uncorrelated with d = u - p (or p could be improved by looking at d), so
E d² = V_u - V_p =: W; if it does not, p has a bias b and E d² = W + b² (for normal noise, Stein's unbiased risk
estimate). Biases of like coefficients are normal with variance r W, r drawn from SIZES with weights that are learned
from all coefficients of a group; noise that is a sum of few Laplace terms is normal with a gamma-distributed variance g
of shape LAPLACE_TERMS, and g = 1 for sums of Gaussian terms. The part ω d with ω = E r/(g+r) is bias.
"""

from dataclasses import dataclass
from functools import cached_property, lru_cache

import numpy as np
import scipy
from numpy.typing import NDArray

from veilcube.polya_tree.belief import Belief
from veilcube.polya_tree.haar_bands import HaarBands
from veilcube.polya_tree.least_squares import TreeLeastSquares
from veilcube.polya_tree.sampling import DRAWS, DRAWS_AT_ONCE, draw_deviations, hashed_normals
from veilcube.system import Floats, Integers, compiled

# Variances of biases in units of W, and how likely each is before anything is seen, worth so many coefficients.
SIZES = np.array([0.0, 0.1, 0.5, 2.0, 8.0, 32.0, 128.0, 1e3, 1e5, 1e18])
PRIOR = np.array([10.0, 2.0, 2.0, 1.0, 1.0, 0.5, 0.5, 0.5, 0.5, 0.1])
PRIOR_COEFFICIENTS = 2.0
LAPLACE_TERMS, QUADRATURE = 1.5, 6
ROUNDS = 40
# Differences of more standard deviations are bias whatever the prior.
FARTHEST = 1e9


@dataclass(frozen=True, eq=False)
class PriorBias:
    """``share`` of each difference is bias; ``variance`` is what remains unknown of it."""

    share: Floats
    variance: Floats


def prior_bias(differences: Floats, noise: Floats, groups: Integers, *, is_normal: bool = False) -> PriorBias:
    """Tell bias from noise: ``differences`` d with noise variances W, by groups of like ones."""
    squares, by_size = np.square(differences), _by_size(differences, noise, is_normal)
    chances, shares, squared_shares, left = by_size
    weights = np.tile(PRIOR / PRIOR.sum(), (int(groups.max()) + 1, 1))
    _learn_weights(chances, groups, PRIOR_COEFFICIENTS * PRIOR / PRIOR.sum(), weights)
    belief = chances * weights[groups]
    belief /= belief.sum(axis=1, keepdims=True)
    share = np.sum(belief * shares, axis=1)
    spread = np.sum(belief * squared_shares, axis=1) - np.square(share)
    return PriorBias(share, noise * np.sum(belief * left, axis=1) + squares * np.maximum(spread, 0.0))


@compiled
def _learn_weights(chances: Floats, groups: Integers, before: Floats, weights: Floats) -> None:
    """Learn each group's weights of the sizes by expectation-maximisation; ``before`` is worth what was seen before."""
    seen, belief = np.empty_like(weights), np.empty(before.size)
    for _ in range(ROUNDS):
        seen[:] = before
        for i in range(groups.size):
            total = 0.0
            for size in range(before.size):
                belief[size] = chances[i, size] * weights[groups[i], size]
                total += belief[size]
            for size in range(before.size):
                seen[groups[i], size] += belief[size] / total
        for group in range(seen.shape[0]):
            weights[group] = seen[group] / seen[group].sum()


def _by_size(differences: Floats, noise: Floats, is_normal: bool) -> tuple[Floats, Floats, Floats, Floats]:
    """Return, for each difference and size r: its likelihood, the means of ω and ω², and the variance left, over W."""
    variances, masses = (np.ones(1), np.ones(1)) if is_normal else _gamma_quadrature()
    standard = np.square(np.minimum(np.abs(differences) / np.sqrt(noise), FARTHEST))[:, None]
    found = np.zeros((4, differences.size, SIZES.size))
    # Likelihoods are relative to the best of each difference, so that none of a far one vanishes.
    exponents = [-0.5 * standard / (g + SIZES) - 0.5 * np.log(g + SIZES) for g in variances]
    best = np.max(exponents, axis=(0, 2))[:, None]
    for g, mass, exponent in zip(variances, masses, exponents, strict=True):
        likelihood, share = mass * np.exp(exponent - best), SIZES / (g + SIZES)
        for row, part in enumerate((1.0, share, share**2, share * g)):
            found[row] += likelihood * part
    likelihood = np.maximum(found[0], np.finfo(np.float64).tiny)
    return likelihood, found[1] / likelihood, found[2] / likelihood, found[3] / likelihood


@lru_cache(maxsize=1)
def _gamma_quadrature() -> tuple[Floats, Floats]:
    """Return points and masses of a gamma law of mean 1."""
    points, masses = scipy.special.roots_genlaguerre(QUADRATURE, LAPLACE_TERMS - 1.0)
    return points / LAPLACE_TERMS, masses / masses.sum()


Draws = NDArray[np.float32]

# Draws of the errors of least squares: for V_u, and to tell whether an answer is far from it.
PLAIN_DRAWS = 64
# W is the difference of two variances that draws tell to about an eighth: it is at least this part of V_u.
LEAST_NOISE = 0.05
# W = V_u - V_p is for normal noise. A posterior under Laplace noise follows it less: on lines, where errors do not add
# up along a further axis, half of V_p was as honest for narrow ranges and 7% more accurate for cells.
FOLLOWED_ON_A_LINE = 0.5
# Values that decided where to go on make least squares err further than its variance says.
DOUBT_OF_LEAST_SQUARES = 0.4
# Whoever makes an interval of the spread of draws multiplies it by this: draws are few and noise has long tails.
WIDENING = 1.25
NEXT_TO_NOTHING = 1e-9
# Rows that are heaped alike stray from an even division so many times further than one row would; an interval of 95%
# need not reach beyond all of them or none, but for WIDENING.
HEAPED, FAR_END = 1.5, 1.96
# All coefficients of a release count like so many of their own when a group is asked whether the posterior claims too
# much; a single one counts up to this, since bias is looked for elsewhere.
COEFFICIENTS_OF_ALL, LARGEST_RATIO = 200, 9.0


@dataclass(frozen=True, eq=False)
class Differences:
    """What the reconciliation rests on, by coefficients of the transform: d = u - p, V_u, V_p and W."""

    bands: HaarBands
    apart: Floats
    of_plain: Floats
    of_posterior: Floats
    is_normal: bool = False

    @property
    def noise(self) -> Floats:
        """W, the variance of d if the prior suits."""
        least = LEAST_NOISE * self.of_plain + NEXT_TO_NOTHING
        levels = self.bands.levels.max(axis=1)
        is_fine = self.bands.is_line & (2 * levels > levels.max()) & (not self.is_normal)
        followed = np.where(is_fine, FOLLOWED_ON_A_LINE, 1.0)
        return np.maximum(self.of_plain - followed * self.of_posterior, least)

    @property
    def overconfidence(self) -> Floats:
        """By how much the posterior's variance falls short of its error, as far as groups of coefficients tell.

        If p errs by V_p, E d² = V_u - V_p. A posterior that follows least squares and yet claims to know better has a
        far smaller d²: its error is V_u - E d². Groups of few coefficients are judged with all others.
        """
        claimed = np.maximum(self.of_plain - self.of_posterior, LEAST_NOISE * self.of_plain + NEXT_TO_NOTHING)
        ratios = np.minimum(np.square(self.apart) / claimed, LARGEST_RATIO)
        groups, others = self.bands.groups, min(COEFFICIENTS_OF_ALL, ratios.size)
        seen = np.bincount(groups) + others
        found = (np.bincount(groups, ratios) + others * ratios.mean()) / seen
        # A mean of squares of noise with long tails is known to about the root of three over their number.
        short = np.clip(1.0 - found - 2.0 * np.sqrt(3.0 / seen), 0.0, 1.0)
        shortfall: Floats = short[groups] * claimed
        return shortfall

    @property
    def of_plain_total(self) -> Floats:
        """V_u of the total and 0 of all others: a single coefficient that no like ones judge errs like least squares.

        The weights of the prior are learned from the same noise, so that all cells together err by far more than the
        posterior believes, and by about as much as what was measured.
        """
        is_total = np.all(self.bands.levels == 0, axis=1)
        return np.where(is_total, self.of_plain, 0.0)

    @property
    def disagreement(self) -> Floats:
        """d² in units of V_u: at most 1 on average unless the prior misleads."""
        return np.square(self.apart) / (self.of_plain + NEXT_TO_NOTHING)


@dataclass(frozen=True, eq=False)
class Heaps:
    """What heaps do to counts: the standard deviation of each ``alone``, and its part where all of them stray."""

    alone: Floats
    together: Floats


def _summed(places: Integers, amounts: Floats, number: int = 0) -> Floats:
    return np.asarray(np.bincount(places, amounts, number), dtype=np.float64)


def _spread_of_share(share: Floats) -> Floats:
    """Return how far, over the rows of a leaf, a count of a share of them strays if rows are heaped."""
    share = np.clip(share, 0.0, 1.0)
    spread = np.minimum(HEAPED * np.sqrt(share * (1.0 - share)), np.maximum(share, 1.0 - share) / FAR_END)
    return np.where(share < 1.0 - NEXT_TO_NOTHING, spread, 0.0)


class Reconciled:
    """Cells of one release: ``cells`` and ``errors`` reconciled, ``plain`` and ``plain_errors`` of least squares."""

    def __init__(self, shape: tuple[int, ...], belief: Belief) -> None:
        self.shape, self.step = shape, belief.step
        self._belief = belief
        self._drawn: Draws = np.empty((DRAWS, belief.measured.tree.cells), dtype=np.float32)
        self._plain_drawn: Draws = np.empty((PLAIN_DRAWS, belief.measured.tree.cells), dtype=np.float32)
        means = belief.cells()
        self.least_squares = TreeLeastSquares.of(belief.measured)
        self.plain: Floats = belief.spread(self.least_squares.counts[None])[0]
        self.differences = self._draw(means)
        apart, groups = self.differences.apart, self.differences.bands.groups
        self.bias: PriorBias = prior_bias(apart, self.differences.noise, groups, is_normal=self.differences.is_normal)
        correction = self.differences.bands.inverse((self.bias.share * self.differences.apart)[None])[0]
        self.cells: Floats = means + correction

    def _draw(self, means: Floats) -> Differences:
        """Draw the errors of both estimates, keep them, and return their variances in the transform."""
        bands, belief = HaarBands(self.shape), self._belief
        of_plain, of_posterior = np.zeros((2, means.size))
        nodes = belief.measured.left.size
        for numbers, deviations, scatter in draw_deviations(belief, DRAWS):
            of_posterior += np.square(bands.forward(deviations)).sum(axis=0)
            self._drawn[numbers] = deviations + scatter
            if numbers[0] < PLAIN_DRAWS:
                normals = hashed_normals(numbers, nodes, nodes + means.size)
                errors = belief.spread(self.least_squares.draw_errors(normals))
                of_plain += np.square(bands.forward(errors)).sum(axis=0)
                self._plain_drawn[numbers] = errors
        apart = bands.forward((self.plain - means)[None])[0]
        is_normal = bool(belief.measured.is_normal.all())
        return Differences(bands, apart, of_plain / PLAIN_DRAWS, of_posterior / DRAWS, is_normal)

    @cached_property
    def errors(self) -> Draws:
        """Draws (draws, cells) of the errors of ``cells``: the posterior's, and what is unknown of its bias."""
        unknown = self.bias.variance + DOUBT_OF_LEAST_SQUARES * np.square(self.bias.share) * self.differences.of_plain
        unknown += self.differences.overconfidence
        unknown = np.maximum(unknown, self.differences.of_plain_total - self.differences.of_posterior)
        spread, cells, errors = np.sqrt(unknown), self.cells.size, self._drawn.copy()
        for start in range(0, DRAWS, DRAWS_AT_ONCE):
            numbers = np.arange(start, start + DRAWS_AT_ONCE)
            normals = hashed_normals(numbers, cells, 3 * self._belief.measured.left.size + cells)
            errors[numbers] += self.differences.bands.inverse(spread * normals).astype(np.float32)
        errors.setflags(write=False)
        return errors

    def heaped_alike(self, inside: NDArray[np.bool_], groups: Integers) -> Heaps:
        """Return the standard deviations of counts of chosen cells for rows that are heaped alike in all leaves.

        ``inside`` tells which cells, flat in the cube's order, are counted, and ``groups`` in which of the counts. A
        leaf with n rows, a share s of which a count is taken to have, may have all of them or none in it. What noise
        does to one leaf it does not do to all; a habit of those who answer (ages that end in 0) does.
        """
        belief = self._belief
        order, leaf_of, number = belief.measured.tree.order, belief.leaf_of_cells, int(groups.max(initial=0)) + 1
        chosen = inside[order]
        pairs, which = np.unique(leaf_of[chosen] * number + groups[order][chosen], return_inverse=True)
        leaves, share = pairs // number, _summed(which, belief.cell_shares[chosen], pairs.size)
        of_all = _summed(leaves, share)[leaves]
        rows = np.maximum(belief.means[leaves], 0.0)
        # Together the groups of a leaf are one count: what it strays by is theirs in proportion.
        part = np.divide(share, of_all, out=np.zeros_like(share), where=of_all > 0)
        alone, together = rows * _spread_of_share(share), rows * part * _spread_of_share(of_all)
        return Heaps(*(_summed(pairs % number, spread, number) for spread in (alone, together)))

    @property
    def plain_errors(self) -> Draws:
        """Draws (draws, cells) of the errors of ``plain``."""
        return self._plain_drawn
