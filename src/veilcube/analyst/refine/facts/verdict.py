"""What a check of facts found: rho beside epsilon, the reasons in sentences, and the privacy statement that follows."""

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
    """How well refined answers hide one record: ``rho`` beside the ``epsilon`` of the answers before refinement.

    ``rho`` is inf where some outcome is possible under only one of two neighbouring tables. ``rho_of_each`` is what
    each refined answer alone gives away. ``scale_needed`` is the noise, larger where it must be, that keeps rho within
    epsilon (inf if none does), ``worst`` the change of the true answers that attains rho, ``is_post_processing``
    whether no fact changes between neighbours; ``explanation`` says it in sentences, one for each dangerous fact.
    """

    rho: float
    epsilon: float
    scale: Floats
    scale_needed: Floats
    rho_of_each: Floats
    coordinates: tuple[int, ...]
    worst: Floats
    is_post_processing: bool
    dangerous: tuple[str, ...]
    explanation: tuple[str, ...]

    def __str__(self) -> str:
        return "\n".join(self.explanation)


def explain(is_post_processing: bool, dangerous: Sequence[str], rho: float, epsilon: float) -> tuple[str, ...]:
    """Return what a check found in sentences: one for each dangerous fact, then the verdict."""
    if is_post_processing:
        return (
            "post-processing is safe: no fact changes with one record, so the refined answers keep "
            f"epsilon = {epsilon:.6g} (rho = {rho:.6g})",
        )
    shown = dangerous[:_FACTS_EXPLAINED]
    facts = [f"the constraint {quoted(fact)} was published exactly: one record changes it" for fact in shown]
    if len(dangerous) > len(shown):
        facts.append(f"and so were {len(dangerous) - len(shown):,} more constraints")
    reasons = facts or ["the facts behind this refinement change with one record"]
    if np.isinf(rho):
        verdict = "some refined answers are possible on one table and impossible on its neighbour: no noise hides it"
    elif rho > epsilon * (1 + 1e-9):
        verdict = (
            f"rho = {rho:.6g} exceeds epsilon = {epsilon:.6g}: {rho / epsilon:.6g} times the noise would restore it"
        )
    else:
        verdict = f"rho = {rho:.6g} stays within epsilon = {epsilon:.6g} for these coordinates alone"
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
        return cls(**known, exact_facts=exact, loss=check.rho)

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
                f"table without noise, so rho = inf and no epsilon covers them."
            )
        return (
            f"{promise} The answers are refined with {named}, read off the private table without noise; "
            f"{self.unit.words} does not change it, so rho = epsilon."
        )

    def to_dict(self) -> dict[str, object]:
        """Return the statement as plain data, with the facts read off the table and rho (null where it is infinite)."""
        refinement = {"exact_facts": list(self.exact_facts), "rho": None if isinf(self.loss) else self.loss}
        return super().to_dict() | {"refinement": refinement}
