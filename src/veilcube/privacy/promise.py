"""What a curator asks for: pure epsilon; epsilon with a delta; or a rho. And the noise that each of them buys.

A pair of epsilon and delta is turned into the largest rho that stays within it (``zcdp.rho_for``). A rho is taken as
it is, and shown as the pair that it implies at a delta of 1e-9. Laplace noise of that epsilon keeps a pair as well, and
is less noise where few measurements are taken: so both are compared, at the same promise.
"""

from dataclasses import dataclass
from fractions import Fraction

from veilcube.errors import PrivacyError
from veilcube.privacy.accountant import Currency
from veilcube.privacy.budget import LARGEST_EPSILON, EpsilonLike, read_epsilon, show_fraction
from veilcube.privacy.zcdp import epsilon_for, pure_epsilon_within, read_delta, read_rho, rho_for

# The delta at which a rho is shown as an epsilon.
DELTA_SHOWN = Fraction(1, 10**9)
# Where delta alone covers a rho, its epsilon would be 0, which no statement may promise: it is shown as this.
_LEAST_SHOWN = Fraction(1, 10**18)


@dataclass(frozen=True)
class Promise:
    """Epsilon alone, or with the delta and the rho that go with it. ``is_in_rho`` says that rho is what was asked for.

    >>> Promise.read(epsilon=1).rho is None, round(float(Promise.read(epsilon=1, delta=1e-9).rho), 5)
    (True, 0.01497)
    """

    epsilon: Fraction
    delta: Fraction = Fraction(0)
    rho: Fraction | None = None
    is_in_rho: bool = False

    @classmethod
    def read(
        cls, epsilon: EpsilonLike | None = None, delta: EpsilonLike | None = None, rho: EpsilonLike | None = None
    ) -> "Promise":
        """Return what was asked for; refuses what contradicts itself."""
        if rho is not None:
            if epsilon is not None or delta is not None:
                raise PrivacyError("rho is a promise of its own: leave epsilon and delta out, or name them and no rho")
            return cls.of_rho(read_rho(rho))
        if epsilon is None:
            what = "epsilon or rho is missing" if delta is None else "a delta needs the epsilon that it goes with"
            raise PrivacyError(f"{what}: ask for epsilon=1, for epsilon=1 with delta=1e-9, or for rho=0.1")
        pure = read_epsilon(epsilon)
        if delta is None:
            return cls(pure)
        chance = read_delta(delta)
        return cls(pure, chance, rho_for(pure, chance))

    @classmethod
    def of_rho(cls, rho: Fraction) -> "Promise":
        """Return the promise of a rho, shown as an epsilon at a delta of 1e-9; refuses one without such an epsilon."""
        epsilon = max(epsilon_for(rho, DELTA_SHOWN), _LEAST_SHOWN)
        if epsilon > LARGEST_EPSILON:
            raise PrivacyError("rho is so large that it hides nothing; use at most 9e8, for example 0.1")
        return cls(epsilon, DELTA_SHOWN, rho, is_in_rho=True)

    @property
    def is_pure(self) -> bool:
        """Whether nothing but epsilon was promised."""
        return self.rho is None

    @property
    def currency(self) -> Currency:
        """What its cost is counted in."""
        return Currency.EPSILON if self.rho is None else Currency.RHO

    @property
    def cost(self) -> Fraction:
        """What is charged for it."""
        return self.epsilon if self.rho is None else self.rho

    @property
    def pure_epsilon(self) -> Fraction:
        """The largest epsilon whose pure promise keeps this one too: of a rho, sqrt(2 rho), rounded down."""
        if self.rho is None or not self.is_in_rho:
            return self.epsilon
        return pure_epsilon_within(self.rho)

    def priced_in_rho(self) -> "Promise":
        """Return the same promise, to be kept at the price of its rho whatever the noise."""
        return self if self.rho is None else Promise(self.epsilon, self.delta, self.rho, is_in_rho=True)

    def scaled(self, factor: Fraction) -> "Promise":
        """Return a promise of the same kind with epsilon, or rho, multiplied."""
        if self.rho is None:
            return Promise(self.epsilon * factor)
        if self.is_in_rho:
            return Promise.of_rho(self.rho * factor)
        return Promise(self.epsilon * factor, self.delta, rho_for(self.epsilon * factor, self.delta))

    @property
    def words(self) -> str:
        """The promise in few words."""
        if self.rho is None:
            return f"epsilon {show_fraction(self.epsilon)}"
        pair = f"epsilon {show_fraction(self.epsilon)} with delta {show_fraction(self.delta)}"
        rho = f"rho {show_fraction(self.rho)}"
        return f"{rho} ({pair})" if self.is_in_rho else f"{pair} ({rho})"
