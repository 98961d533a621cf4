"""Whether facts fit what was measured: how far each is from its noisy answer, and all of them together.

With residuals r = c - B'x̂ of covariance G, a fact is off by |r_j| / √G_jj standard errors, an inequality by what it
is broken by. Together they are off by r'G⁻¹r, which is chi-square with as many degrees of freedom as facts if they
are true and the noise is normal; of inequalities those that bind count, since the distance to a face of a cone is
chi-square with its codimension, given the face. Noise of excess kurtosis κ makes the variance of the sum of k squares
at most (2 + κ) k instead of 2k: whitened noises are combinations of independent ones by orthonormal rows, whose
leverages are at most 1 and add up to k. So the chi-square is scaled to that variance.
"""

import warnings
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from scipy.stats import chi2

from veilcube.analyst.refine.facts.facts import Fact
from veilcube.analyst.refine.facts.sentences import quoted
from veilcube.laws import laplace_sum_deviations, normal_quantile
from veilcube.system import Floats

LIMIT = 4.0
# Where so many facts are tested that some would be off by 4 standard errors in one release of a hundred by noise alone,
# more is asked of each; the chi-square of all is held to what a normal variable does beyond 4.
_CHANCE_OF_ANY = 0.01
_CHANCE_OF_ALL = 6.334e-5
_MOST_NAMED = 3
_MOST_SHOWN = 1e6
# A standard error that is no number above 0 still divides.
_LEAST = 1e-100


@dataclass(frozen=True)
class FactDeviation:
    """One fact, and by how many standard errors of the noise it is off."""

    fact: Fact
    standard_errors: float

    def __str__(self) -> str:
        return f"{quoted(self.fact.sentence)} is off by {_shown(self.standard_errors)} standard errors"


@dataclass(frozen=True)
class FactTest:
    """How far facts are from what was measured.

    ``deviations`` tells of each fact by how many standard errors it is off, the worst first; ``off`` are those that
    noise does not explain. ``chi_square`` has ``degrees`` of freedom, and ``chance`` tells how often noise alone makes
    it so large; None where the covariance of the facts is not known.
    """

    deviations: tuple[FactDeviation, ...]
    off: tuple[FactDeviation, ...]
    chi_square: float | None = None
    degrees: int = 0
    chance: float | None = None

    @property
    def fits(self) -> bool:
        """Whether noise explains how far the facts are off."""
        return not self.off and (self.chance is None or self.chance > _CHANCE_OF_ALL)

    @property
    def words(self) -> str:
        """What was found, in one sentence."""
        if self.fits:
            return "The facts fit what was measured."
        if not self.off:
            worst = f"; {self.deviations[0]}" if self.deviations else ""
            return (
                "The facts do not fit what was measured: none is off by far more than noise, but all together are"
                f"{worst}. Check them, and whether they are about the same rows."
            )
        named = " and ".join(map(str, self.off[:_MOST_NAMED]))
        more = len(self.off) - _MOST_NAMED
        more_words = f", and {more:,} more" if more > 0 else ""
        return (
            f"The facts do not fit what was measured: {named}{more_words}. "
            "Check them, and whether they are about the same rows."
        )

    def __str__(self) -> str:
        return self.words

    def to_dict(self) -> dict[str, object]:
        """Return the test as plain data."""
        return {
            "fits": self.fits,
            "words": self.words,
            "chi_square": self.chi_square,
            "degrees": self.degrees,
            "chance": self.chance,
            "facts": [
                {"sentence": one.fact.sentence, "standard_errors": one.standard_errors, "is_off": one in self.off}
                for one in self.deviations
            ],
        }

    def warn(self) -> None:
        """Warn whoever called the function that calls this, if the facts do not fit."""
        if not self.fits:
            warnings.warn(self.words, stacklevel=3)


def judge_facts(
    facts: Sequence[Fact],
    residuals: Floats,
    stddevs: Floats,
    fourth: Floats,
    joint: tuple[float, int, float] | None = None,
) -> FactTest:
    """Return the test of facts that are off by ``residuals``, whose noise has these standard deviations.

    ``fourth`` tells how far each noise is from a normal one, Σw⁴ / (Σw²)² of its weights in Laplace variables.
    ``joint`` is the chi-square of all facts, its degrees of freedom, and the excess kurtosis of a single noise.
    """
    with np.errstate(over="ignore"):
        deviations = np.minimum(np.abs(residuals) / np.maximum(stddevs, _LEAST), np.finfo(np.float64).max)
    worst: dict[Fact, int] = {}
    for row in np.argsort(-deviations, kind="stable").tolist():
        worst.setdefault(facts[row], row)
    limits = _limits(fourth, len(worst))
    found = {fact: FactDeviation(fact, float(deviations[row])) for fact, row in worst.items()}
    off = tuple(one for fact, one in found.items() if one.standard_errors >= limits[worst[fact]])
    if joint is None:
        return FactTest(tuple(found.values()), off)
    chi_square, degrees, kurtosis = joint
    return FactTest(tuple(found.values()), off, chi_square, degrees, chance_of(chi_square, degrees, kurtosis))


def inner_product(left: Floats, right: Floats) -> float:
    """Return the inner product of two vectors; the largest number there is, if it is beyond."""
    with np.errstate(over="ignore", invalid="ignore"):
        return float(np.nan_to_num(left @ right, nan=np.finfo(np.float64).max))


def _limits(fourth: Floats, facts: int) -> Floats:
    """Return how many standard errors each fact may be off: 4, and more among very many facts."""
    confidence = 1 - _CHANCE_OF_ANY / max(1, facts)
    return np.maximum(np.maximum(laplace_sum_deviations(fourth, confidence), normal_quantile(confidence)), LIMIT)


def chance_of(chi_square: float, degrees: int, kurtosis: float) -> float:
    """Return how often noise alone makes the chi-square so large.

    >>> round(chance_of(16.0, 1, 0.0), 6)
    6.3e-05
    """
    if degrees == 0:
        return 1.0
    scale = (2 + max(kurtosis, 0.0)) / 2
    return float(chi2.sf(chi_square / scale, degrees / scale))


def _shown(number: float) -> str:
    return f"{number:,.1f}" if number < _MOST_SHOWN else "more than a million"
