"""The noise that a release declares, as a probability law: no sampling happens here.

Notation: t is the scale, p = exp(-1/t), V = 2p/(1-p)² the variance. Everything below is a function of t and V alone,
and V is computed with ``expm1`` so that no formula cancels, whether the scale is far below one or far above 2^40.
Scales in files are untrusted: ``Fraction("1e999999999")`` would take all memory, so only short texts are read.
"""

import math
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from typing import ClassVar, Literal, TypeAlias

import numpy as np
from numpy.typing import ArrayLike, NDArray

from veilcube.errors import PrivacyError
from veilcube.laws.discrete_gaussian import BlockGaussian, DiscreteGaussian, RealOrComplex, log_of_one_plus
from veilcube.system import Floats

# Enough for any fraction of 1,100 bits, which is what a ledger keeps.
MAX_DIGITS = 340
_RATIO = re.compile(r"([0-9]+)(?:/([0-9]+))?", re.ASCII)


def read_ratio(text: object, max_digits: int = MAX_DIGITS) -> Fraction:
    """Return the ratio that ``write_fraction`` wrote; raises ``ValueError`` on anything else, however long it is.

    >>> read_ratio("7/2")
    Fraction(7, 2)
    """
    found = _RATIO.fullmatch(text) if isinstance(text, str) and len(text) <= 2 * max_digits + 1 else None
    if found is None or any(len(part or "") > max_digits for part in found.groups()) or not int(found[2] or "1"):
        raise ValueError(f"not an exact ratio of at most {max_digits} digits on each side")
    return Fraction(found[0])


KIND, JOINT_KIND, SHARPENED_KIND = "discrete-laplace", "joint-discrete-laplace", "sharpened-discrete-laplace"
# Outside these scales the sixth cumulant leaves the range of a double; no count that fits in 64 bits needs more.
SMALLEST_SCALE = Fraction(1, 2**64)
LARGEST_SCALE = Fraction(2**128)
_MAX_DIGITS = 100


@dataclass(frozen=True)
class DiscreteLaplace:
    """The law P(x) = tanh(1/(2t)) · exp(-|x|/t) on the integers, with the exact rational scale t.

    >>> noise = DiscreteLaplace(Fraction(10))
    >>> round(noise.variance, 6)
    199.833417
    >>> print(noise)
    discrete Laplace noise of scale 10
    """

    scale: Fraction
    kind: ClassVar[str] = KIND
    family: ClassVar[Literal["laplace"]] = "laplace"
    # Whether it was drawn together with other noise: then its own law tells bounds only.
    is_joint: ClassVar[bool] = False
    # Whether all nodes below were measured at once with it: then no decision looked at it.
    in_block: ClassVar[bool] = False

    def __post_init__(self) -> None:
        if isinstance(self.scale, bool) or not isinstance(self.scale, int | Fraction):
            raise PrivacyError(
                f"a noise scale must be an exact number, not {type(self.scale).__name__}: give a Fraction or an int"
            )
        if not SMALLEST_SCALE <= self.scale <= LARGEST_SCALE:
            raise PrivacyError(
                "a noise scale must be positive, from 2^-64 to 2^128: choose another epsilon or sensitivity"
            )
        object.__setattr__(self, "scale", Fraction(self.scale))

    def __str__(self) -> str:
        return f"discrete Laplace noise of scale {self.scale}"

    @property
    def before(self) -> Fraction | None:
        """The scale of the noise whose place it takes; None if it takes the place of none."""
        return None

    @property
    def parameter(self) -> Fraction:
        """The exact number that tells the law among those of its family: the scale."""
        return self.scale

    @property
    def size(self) -> float:
        """What the noise is on average at most, regardless of its sign: the scale, since E|X| = 1/sinh(1/t) < t."""
        return float(self.scale)

    @property
    def laplace_scale(self) -> float:
        """The scale, by which noise of both families can be compared."""
        return float(self.scale)

    @cached_property
    def rate(self) -> float:
        """1/t, the decay of the log-probability per unit; the law's moment generating function is finite below it."""
        return float(1 / self.scale)

    @property
    def charged(self) -> Fraction:
        """The scale that a privacy event states for this noise: 1/scale is what it adds to a row's cost."""
        return self.scale

    @cached_property
    def variance(self) -> float:
        """V = 2p/(1-p)² = 1/(2 sinh²(1/(2t))), about 2t² for large scales."""
        return 2 * math.exp(-self.rate) / math.expm1(-self.rate) ** 2

    @property
    def stddev(self) -> float:
        """The square root of the variance."""
        return math.sqrt(self.variance)

    @property
    def most_kurtosis(self) -> float:
        """The excess kurtosis 3 + 1/V; the sum of m terms has an m-th of it."""
        return 3 + 1 / self.variance

    def log_pmf(self, x: ArrayLike) -> NDArray[np.float64]:
        """The natural logarithm of the probability of each integer of ``x``; it never underflows."""
        log_at_zero = math.log(-math.expm1(-self.rate)) - math.log1p(math.exp(-self.rate))
        return np.asarray(log_at_zero - self.rate * np.abs(np.asarray(x, dtype=np.float64)))

    def pmf(self, x: ArrayLike) -> NDArray[np.float64]:
        """The probability of each integer of ``x``."""
        return np.asarray(np.exp(self.log_pmf(x)))

    def cumulants(self) -> tuple[float, float, float]:
        """The second, fourth and sixth cumulant (the odd ones are zero).

        They are the Taylor coefficients of K(s) = -log(1 - V(cosh s - 1)), the logarithm of the moment generating
        function: polynomials in V with positive coefficients, so nothing cancels at any scale.
        """
        v = self.variance
        return v, v * (1 + 3 * v), v * (1 + 15 * v + 30 * v * v)

    def characteristic(self, theta: ArrayLike) -> NDArray[np.float64]:
        """The characteristic function 1/(1 + 2V sin²(θ/2)): real, 2π-periodic, and free of cancellation near zero."""
        half_sine = np.sin(np.asarray(theta, dtype=np.float64) / 2)
        return np.asarray(1 / (1 + 2 * self.variance * half_sine * half_sine))

    def decay(self, theta: Floats) -> Floats:
        """-log of the characteristic function, which does not underflow."""
        return np.log1p(2 * self.variance * np.sin(theta / 2) ** 2)

    def log_transform(self, z: RealOrComplex) -> RealOrComplex:
        """K(z), the logarithm of E exp(z·X), up to multiples of 2πi; the real part of z is below 1/t."""
        inverse: RealOrComplex = log_of_one_plus(np.multiply(-2 * self.variance, np.sinh(z / 2) ** 2))
        return -inverse

    def tilted(self, c: Floats) -> tuple[Floats, Floats]:
        """Mean and variance K'(c), K''(c) of the law that is weighted by exp(c·x), for real c below 1/t."""
        step = self.tilted_step(c)
        mean = np.tanh(c) * step
        return mean, step + mean**2

    def tilted_step(self, c: Floats) -> Floats:
        """A number b for which that law's characteristic function is at most 1/(1 + b(1 - cos θ)) in size."""
        return self.variance * np.cosh(c) / (1 - 2 * self.variance * np.sinh(c / 2) ** 2)

    def farthest_tilt(self, exponent: float) -> float:
        """A c by which c·K'(c) - K(c) has reached ``exponent``: 1/t, before which it passes every number."""
        return self.rate

    def to_json(self) -> dict[str, str]:
        """The law as plain data, the scale as an exact ratio: ``{"kind": "discrete-laplace", "scale": "7/2"}``."""
        return {"kind": self.kind, "scale": str(self.scale)}

    @classmethod
    def from_json(cls, document: Mapping[str, object]) -> "DiscreteLaplace":
        """Read what ``to_json`` wrote; the text is untrusted, so anything else is refused."""
        kind = str(document.get("kind"))
        if kind == SHARPENED_KIND:
            return SharpenedLaplace(_read_scale(document.get("scale")), _read_scale(document.get("added")))
        law = {KIND: DiscreteLaplace, JOINT_KIND: JointLaplace}.get(kind)
        if law is None:
            raise PrivacyError(
                f'the kind of noise is not known here: only "{KIND}", "{JOINT_KIND}" and "{SHARPENED_KIND}" can be '
                "read, so update veilcube"
            )
        return law(_read_scale(document.get("scale")))


def _read_scale(text: object, name: str = "noise scale") -> Fraction:
    try:
        return read_ratio(text, _MAX_DIGITS)
    except ValueError as problem:
        raise PrivacyError(
            f'the {name} must be an exact ratio in text such as "7/2": repair or remake the file'
        ) from problem


@dataclass(frozen=True)
class JointLaplace(DiscreteLaplace):
    """Noise of one level of nodes that was drawn together with that of the levels below and above it.

    The noises z_v of all nodes of a block have P(z) proportional to exp(-Σ_v |z_v| / t_v), where a node's noise is the
    sum of its halves'. Nodes of one level share the scale t. No node's noise is larger than the independent law with
    its scale says, at any probability (docs/proofs/joint-noise.md, Theorem 2): what that law tells are bounds here.
    """

    kind: ClassVar[str] = JOINT_KIND
    is_joint: ClassVar[bool] = True
    in_block: ClassVar[bool] = True

    def __str__(self) -> str:
        return f"discrete Laplace noise of scale {self.scale}, drawn jointly with the levels around it"


@dataclass(frozen=True)
class SharpenedLaplace(DiscreteLaplace):
    """Noise that takes the place of larger noise which was published of the same nodes before.

    The earlier value is this one plus further noise that tells nothing about the count, so both together cost what this
    one costs: 1/scale, which is what was spent before plus 1/``added`` (docs/proofs/sharpened-noise.md). Whoever has
    this value has no use for the earlier one.
    """

    added: Fraction
    kind: ClassVar[str] = SHARPENED_KIND

    def __post_init__(self) -> None:
        super().__post_init__()
        DiscreteLaplace(self.added)
        object.__setattr__(self, "added", Fraction(self.added))
        if self.added <= self.scale:
            raise PrivacyError("noise is sharpened by adding to a budget that was spent before: repair the file")

    @classmethod
    def of(cls, before: Fraction, added: Fraction) -> "SharpenedLaplace":
        """Return what noise of scale ``before`` becomes by spending 1/``added`` more."""
        return cls(1 / (1 / Fraction(before) + 1 / Fraction(added)), added)

    @property
    def before(self) -> Fraction:
        """The scale of the noise whose place it takes."""
        return 1 / (1 / self.scale - 1 / self.added)

    @property
    def charged(self) -> Fraction:
        """The scale of what was added."""
        return self.added

    def __str__(self) -> str:
        return f"discrete Laplace noise of scale {self.scale}, in place of scale {self.before} before"

    def to_json(self) -> dict[str, str]:
        """The law as plain data, with what was added."""
        return {**super().to_json(), "added": str(self.added)}


Noise: TypeAlias = DiscreteLaplace | DiscreteGaussian


def _read_gaussian(document: Mapping[str, object]) -> DiscreteGaussian:
    law = BlockGaussian if document.get("kind") == BlockGaussian.kind else DiscreteGaussian
    return law(_read_scale(document.get("sigma_squared"), "parameter of Gaussian noise"))


_READERS: dict[str, Callable[[Mapping[str, object]], Noise]] = {
    **dict.fromkeys((KIND, JOINT_KIND, SHARPENED_KIND), DiscreteLaplace.from_json),
    **dict.fromkeys((DiscreteGaussian.kind, BlockGaussian.kind), _read_gaussian),
}


def read_noise(document: Mapping[str, object]) -> Noise:
    """Read the ``to_json`` of noise of any kind; the text is untrusted, so anything else is refused.

    >>> print(read_noise({"kind": "discrete-gaussian", "sigma_squared": "7/2"}))
    discrete Gaussian noise of parameter 7/2
    """
    reader = _READERS.get(str(document.get("kind")))
    if reader is None:
        known = ", ".join(f'"{kind}"' for kind in _READERS)
        raise PrivacyError(f"the kind of noise is not known here: only {known} can be read, so update veilcube")
    return reader(document)
