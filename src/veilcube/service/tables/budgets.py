"""Budgets for people: what is left of a dataset and of a share, and how many more counts it pays for."""

from collections.abc import Mapping
from dataclasses import dataclass
from decimal import ROUND_UP, Decimal, localcontext
from fractions import Fraction
from math import inf, log

import numpy as np

from veilcube.curator import Charge, Ledger, Share
from veilcube.errors import PrivacyError
from veilcube.laws import DiscreteGaussian, DiscreteLaplace, Noise, half_widths
from veilcube.privacy import (
    SMALLEST_RHO,
    Budget,
    Currency,
    Neighbours,
    scale_for,
    show_fraction,
    sigma_squared_for,
    unit_sensitivity,
    unit_sensitivity_l2_squared,
    write_fraction,
)
from veilcube.service.tables.datasets import Dataset

WITHIN = 50.0
LEVEL = 0.95
_FINEST, _SOONEST = 1e-9, 1e6


def plain_budget(budget: Budget) -> dict[str, object]:
    """Return a budget as plain data, exactly and for people."""
    amounts = {"total": budget.total, "spent": budget.spent, "left": budget.left}
    numbers = {name: float(amount) for name, amount in amounts.items()}
    words = {name: show_fraction(amount) for name, amount in amounts.items()}
    return (
        {"currency": str(budget.currency)}
        | {name: write_fraction(one) for name, one in amounts.items()}
        | {"words": words, "numbers": numbers}
    )


def count_noise(dataset: Dataset, price: Fraction, currency: Currency) -> Noise:
    """Return the noise of one count for a price: Laplace noise from an epsilon, Gaussian noise from a rho."""
    relation, unit = Neighbours.read(dataset.neighbours), dataset.unit
    # All rows together: one row that is exchanged for another leaves their number, but conditions see it come or go.
    if currency is Currency.EPSILON:
        return DiscreteLaplace(scale_for(price, unit_sensitivity(1, 1, unit, relation)))
    return DiscreteGaussian(sigma_squared_for(price, unit_sensitivity_l2_squared(1, 1, unit, relation)))


def price_of_count(dataset: Dataset, within: float, currency: Currency, confidence: float = LEVEL) -> Fraction | None:
    """Return about the least price at which a count lies within an error; None if no sensible one does."""
    low, high = log(_FINEST), log(_SOONEST)
    for _ in range(40):
        middle = (low + high) / 2
        low, high = (low, middle) if _width(dataset, middle, currency, confidence) <= within else (middle, high)
    found = _rounded_up(float(np.exp(high)))
    return found if found < _SOONEST and (currency is Currency.EPSILON or found >= SMALLEST_RHO) else None


def _width(dataset: Dataset, exponent: float, currency: Currency, confidence: float) -> float:
    try:
        noise = count_noise(dataset, Fraction(repr(float(np.exp(exponent)))), currency)
    except PrivacyError:  # beyond the noise that can be drawn
        return inf
    return float(half_widths(noise, np.array([1]), confidence)[0])


def _rounded_up(price: float) -> Fraction:
    with localcontext() as context:
        context.prec, context.rounding = 3, ROUND_UP
        return Fraction(+Decimal(repr(price)))


@dataclass(frozen=True)
class Forecast:
    """How many more counts within an error a budget pays for."""

    within: float
    price: Fraction | None
    questions: int
    currency: Currency

    @classmethod
    def of(cls, dataset: Dataset, left: Fraction, currency: Currency, within: float = WITHIN) -> "Forecast":
        """Return the forecast for what is left."""
        price = price_of_count(dataset, within, currency)
        return cls(within, price, 0 if price is None else int(max(left, Fraction(0)) / price), currency)

    @property
    def words(self) -> str:
        """The forecast as one sentence."""
        within = f"within ±{self.within:g} with {LEVEL:.0%} confidence"
        if self.price is None:
            return f"No count can be told {within}."
        many = (
            f"about {self.questions:,} more counts"
            if self.questions > 1
            else "one more count"
            if self.questions
            else ""
        )
        each = f"one such count costs {self.currency} {show_fraction(self.price)}"
        return f"Enough for {many} {within}; {each}." if many else f"Not enough for one more count {within}; {each}."

    def to_dict(self) -> dict[str, object]:
        """Return plain data for JSON."""
        price = None if self.price is None else write_fraction(self.price)
        words = None if self.price is None else show_fraction(self.price)
        told: dict[str, object] = {"within": self.within, "price": price, "price_words": words}
        return told | {"questions": self.questions, "words": self.words}


def share_of(ledger: Ledger, dataset: str, analyst: str) -> Share | None:
    """Return what somebody may spend; None if nobody granted it."""
    return next((share for share in ledger.shares(dataset) if share.analyst == analyst), None)


def what_is_left(ledger: Ledger, dataset: Dataset, analyst: str | None, within: float = WITHIN) -> dict[str, object]:
    """Return what is left of a dataset's budget and, for somebody with a share, of that; with forecasts."""
    budget = ledger.budget(dataset.name)
    share = None if analyst is None else share_of(ledger, dataset.name, analyst)
    left = budget.left if share is None else min(budget.left, share.budget.left)
    return {
        "budget": plain_budget(budget),
        "share": None if share is None else plain_budget(share.budget),
        "forecast": Forecast.of(dataset, left, budget.currency, within).to_dict(),
    }


def plain_shares(ledger: Ledger, dataset: str) -> list[dict[str, object]]:
    """Return who may spend what."""
    return [{"analyst": share.analyst, **plain_budget(share.budget)} for share in ledger.shares(dataset)]


def plain_charge(charge: Charge) -> Mapping[str, object]:
    """Return a charge as plain data."""
    facts = {"id": charge.id, "dataset": charge.dataset, "analyst": charge.analyst, "at": charge.at}
    told = {"purpose": charge.purpose, "output": charge.details.output, "note": charge.details.note}
    amount = {"amount": write_fraction(charge.amount), "currency": str(charge.currency)}
    return facts | amount | {"words": f"{charge.currency} {show_fraction(charge.amount)}"} | told
