"""The desk where questions are paid for: recall a stored answer, or charge, draw and keep a new one, in that order.

The charge is on disk before the first random bit, and the answer before anybody sees it. A crash in between wastes
budget and never gives any away: what was drawn and not kept is gone.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

from veilcube.curator.ledger import ChargeDetails, Ledger, PartOf, StoredAnswer
from veilcube.curator.mechanisms import Samplers, redeem_for
from veilcube.curator.protected.rows import PrivateRows
from veilcube.errors import BudgetExceededError, PrivacyError
from veilcube.laws import Noise
from veilcube.privacy import (
    Currency,
    EpsilonLike,
    Neighbours,
    PrivacyStatement,
    PrivacyUnit,
    Private,
    Promise,
    paid_for,
)
from veilcube.record import Question


class Offer(NamedTuple):
    """What an analyst offers to pay for an answer, as they wrote it."""

    epsilon: EpsilonLike | None
    delta: EpsilonLike | None = None
    rho: EpsilonLike | None = None


@dataclass(frozen=True, eq=False)
class Desk(Private):
    """What all tables that come from one protected table share: the rows, the account that pays, and the noise.

    ``samplers`` is handed on to mechanisms, which alone draw from it.
    ``instead`` may tell, for a question that the budget refuses, what public history can answer.
    """

    rows: PrivateRows
    ledger: Ledger
    dataset: str
    neighbours: Neighbours
    analyst: str | None = None
    samplers: Samplers = field(default_factory=Samplers, repr=False)
    instead: Callable[[Question], str | None] | None = field(default=None, repr=False)

    @property
    def unit(self) -> PrivacyUnit:
        """Whose presence answers hide."""
        return self.rows.unit

    def promise(self, offer: Offer) -> Promise:
        """Return what an offer promises; a budget in rho pays the price of rho whatever the noise."""
        promise = Promise.read(*offer)
        if promise.is_pure or promise.is_in_rho or self.ledger.currency(self.dataset) is Currency.EPSILON:
            return promise
        return promise.priced_in_rho()

    def recall(
        self,
        question: Question,
        statement: PrivacyStatement,
        noise: Noise | None = None,
        fits: Callable[[Sequence[int]], bool] | None = None,
    ) -> StoredAnswer | None:
        """Return the most accurate answer to the question that was stored, if it is as accurate as what is asked for.

        Accuracy is the variance of the noise or, for mechanisms without any, the epsilon of the promise, which is pure.
        An answer whose values do not fit the question means that the ledger is damaged.
        """
        found = self.ledger.find_answers(self.dataset, question.key(self.unit))
        if noise is not None:
            noisy = [(answer.noise, answer) for answer in found if answer.noise is not None]
            quiet = [(law.variance, law.parameter, answer) for law, answer in noisy if _is_as_quiet(law, noise)]
            best = min(quiet, key=lambda entry: entry[:2])[2] if quiet else None
        else:
            others = [one for one in found if one.noise is None and one.statement.epsilon >= statement.epsilon]
            best = max(others, key=lambda answer: answer.statement.epsilon, default=None)
        if best is not None and fits is not None and not fits(best.values):
            raise self.ledger.damaged()
        return best

    def measure(
        self,
        question: Question,
        statement: PrivacyStatement,
        draw: Callable[[], Sequence[int]],
        noise: Noise | None = None,
        within: Sequence[PartOf] = (),
    ) -> StoredAnswer:
        """Charge the statement, redeem the receipt, draw, keep what was drawn, and only then return it."""
        if (statement.unit, statement.neighbours) != (self.unit, self.neighbours):
            raise PrivacyError("the promise is for another unit or other neighbours than the protected table's")
        paying = self.ledger.paying(
            self.dataset,
            statement,
            purpose=question.words,
            analyst=self.analyst,
            within=within,
            details=ChargeDetails(schema=question.schema.fingerprint()),
        )
        try:
            with paying as receipt:
                redeem_for(receipt, statement)
                values = paid_for(lambda: [int(value) for value in draw()])
                return self.ledger.keep(
                    receipt,
                    question.schema,
                    question.key(self.unit),
                    question.data,
                    values,
                    noise,
                    analyst=self.analyst,
                )
        except BudgetExceededError as problem:
            offer = None if self.instead is None else self.instead(question)
            if offer is None:
                raise
            raise BudgetExceededError(f"{problem}; {offer}") from None


def _is_as_quiet(one: Noise, other: Noise) -> bool:
    """Whether noise has no larger variance than other noise, exactly where both are of one family."""
    return one.parameter <= other.parameter if one.family == other.family else one.variance <= other.variance
