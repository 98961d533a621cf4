"""The privacy statement of a refined release: the promise of the measurements, and what the facts do to it."""

from dataclasses import dataclass, fields
from math import inf, isinf

from veilcube.analyst.refine.facts import Fact
from veilcube.analyst.refine.sentences import quoted
from veilcube.analyst.refine.verdict import RefinementPrivacy
from veilcube.privacy import PrivacyStatement

_FACTS_QUOTED = 5


@dataclass(frozen=True)
class RefinedStatement(PrivacyStatement):
    """The promise of the measurements, with the facts that were read off the private table and rho under them.

    ``rho`` is epsilon where no such fact changes with one unit (refining is post-processing), and infinite otherwise.
    """

    exact_facts: tuple[str, ...] = ()
    rho: float = inf

    @classmethod
    def of(cls, statement: PrivacyStatement, facts: tuple[Fact, ...], check: RefinementPrivacy) -> "RefinedStatement":
        """Return the statement of a release refined with facts, given what the check of the marked ones found."""
        exact = tuple(fact.sentence for fact in facts if fact.source == "exact private statistic")
        known = {field.name: getattr(statement, field.name) for field in fields(PrivacyStatement)}
        return cls(**known, exact_facts=exact, rho=check.rho)

    @property
    def words(self) -> str:
        """The promise as sentences, with a warning where facts were read off the private table."""
        promise = super().words
        if not self.exact_facts:
            return promise
        named = " and ".join(quoted(fact) for fact in self.exact_facts[:_FACTS_QUOTED])
        more = len(self.exact_facts) - _FACTS_QUOTED
        named += f" and {more:,} more" if more > 0 else ""
        if isinf(self.rho):
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
        refinement = {"exact_facts": list(self.exact_facts), "rho": None if isinf(self.rho) else self.rho}
        return super().to_dict() | {"refinement": refinement}
