"""What a check of facts found: loss beside epsilon, the reasons, and the privacy statement that follows."""

from collections.abc import Sequence
from dataclasses import dataclass, fields
from math import inf, isinf

import numpy as np

from veilcube.analyst.refine.facts.facts import Fact
from veilcube.analyst.refine.facts.sentences import quoted
from veilcube.privacy import PrivacyStatement
from veilcube.system import Floats

_FACTS_EXPLAINED = 20


@dataclass(frozen=True, eq=False)
class RefinementPrivacy:
    """How well refined answers hide one record: the ``loss`` beside the ``epsilon`` of the answers before refinement.

    ``loss`` is inf where some outcome is possible under only one of two neighbouring tables. ``loss_of_each`` is what
    each refined answer alone gives away. ``scale`` is that of the noise, sigma of Gaussian noise, and ``scale_needed``
    the one, larger where it must be, that keeps the loss within epsilon (inf if none does); ``worst`` is the change of
    the true answers that attains the loss, ``is_post_processing`` whether no fact changes between neighbours;
    ``explanation`` says it in sentences, one for each dangerous fact.
    """

    loss: float
    epsilon: float
    scale: Floats
    scale_needed: Floats
    loss_of_each: Floats
    coordinates: tuple[int, ...]
    worst: Floats
    is_post_processing: bool
    dangerous: tuple[str, ...]
    explanation: tuple[str, ...]

    @property
    def rho(self) -> float:
        """The loss under the name it had before rho became the unit of zero-concentrated differential privacy."""
        return self.loss

    @property
    def rho_of_each(self) -> Floats:
        """The loss of each answer under the name it had before."""
        return self.loss_of_each

    def __str__(self) -> str:
        return "\n".join(self.explanation)


def explain(
    is_post_processing: bool, dangerous: Sequence[str], loss: float, epsilon: float, delta: float = 0.0
) -> tuple[str, ...]:
    """Return what a check found in sentences: one for each dangerous fact, then the verdict."""
    if is_post_processing:
        kept = f"epsilon = {epsilon:.6g} with delta = {delta:.3g}" if delta else f"epsilon = {epsilon:.6g}"
        return (
            f"post-processing is safe: no fact changes with one record, so the refined answers keep {kept} "
            f"(loss = {loss:.6g})",
        )
    shown = dangerous[:_FACTS_EXPLAINED]
    facts = [f"the constraint {quoted(fact)} was published exactly: one record changes it" for fact in shown]
    if len(dangerous) > len(shown):
        facts.append(f"and so were {len(dangerous) - len(shown):,} more constraints")
    reasons = facts or ["the facts behind this refinement change with one record"]
    if np.isinf(loss):
        verdict = "some refined answers are possible on one table and impossible on its neighbour: no noise hides it"
    elif loss > epsilon * (1 + 1e-9):
        verdict = (
            f"loss = {loss:.6g} exceeds epsilon = {epsilon:.6g}: {loss / epsilon:.6g} times the noise would restore it"
        )
    else:
        verdict = f"loss = {loss:.6g} stays within epsilon = {epsilon:.6g} for these coordinates alone"
    return (*reasons, verdict)


_FACTS_QUOTED = 5


@dataclass(frozen=True)
class RefinedStatement(PrivacyStatement):
    """The promise of the measurements, with the facts that were read off the private table, and the loss under them.

    ``loss`` is epsilon where no such fact changes with one unit (refining is post-processing), and infinite otherwise.
    """

    exact_facts: tuple[str, ...] = ()
    loss: float = inf

    @classmethod
    def of(cls, statement: PrivacyStatement, facts: tuple[Fact, ...], check: RefinementPrivacy) -> "RefinedStatement":
        """Return the statement of a release refined with facts, given what the check of the marked ones found."""
        exact = tuple(fact.sentence for fact in facts if fact.source == "exact private statistic")
        known = {field.name: getattr(statement, field.name) for field in fields(PrivacyStatement)}
        return cls(**known, exact_facts=exact, loss=check.loss)

    @property
    def words(self) -> str:
        """The promise as sentences, with a warning where facts were read off the private table."""
        promise = super().words
        if not self.exact_facts:
            return promise
        named = " and ".join(quoted(fact) for fact in self.exact_facts[:_FACTS_QUOTED])
        more = len(self.exact_facts) - _FACTS_QUOTED
        named += f" and {more:,} more" if more > 0 else ""
        if isinf(self.loss):
            return (
                f"{promise} The answers do not keep this promise: they are refined with {named}, read off the private "
                f"table without noise, so the loss is infinite and no epsilon covers them."
            )
        return (
            f"{promise} The answers are refined with {named}, read off the private table without noise; "
            f"{self.unit.words} does not change it, so the promise stays."
        )

    def to_dict(self) -> dict[str, object]:
        """Return the statement as plain data, with the facts read off the table and the loss (null if it is infinite).

        The loss is there under the name ``rho`` too, for earlier programs.
        """
        loss = None if isinf(self.loss) else self.loss
        return super().to_dict() | {"refinement": {"exact_facts": list(self.exact_facts), "loss": loss, "rho": loss}}
