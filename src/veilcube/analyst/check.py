"""A release's own health: how well what its answers rest on agrees with what was measured, at no cost in privacy."""

from collections.abc import Sequence
from dataclasses import dataclass

from veilcube.analyst.estimate import CheckedEstimate, Estimate, Finding


@dataclass(frozen=True)
class ReleaseCheck:
    """What the checks of one estimator found on one release."""

    estimator: str
    findings: tuple[Finding, ...]

    @classmethod
    def of(cls, estimator: str, estimate: Estimate, names: Sequence[str]) -> "ReleaseCheck":
        """Ask an estimate; one that rests on the noise alone has nothing to find."""
        found = estimate.findings(names) if isinstance(estimate, CheckedEstimate) else ()
        return cls(estimator, found)

    @property
    def is_good(self) -> bool:
        """Whether noise explains all that was found."""
        return all(finding.is_good for finding in self.findings)

    @property
    def words(self) -> str:
        """The check in a sentence or two."""
        if not self.findings:
            return f"{self.estimator}: it assumes nothing about neighbouring cells, so there is nothing to check."
        bad = [finding for finding in self.findings if not finding.is_good]
        if not bad:
            return (
                f"{self.estimator}: what was measured agrees with what the answers assume, for every kind of question."
            )
        worst = max(bad, key=lambda finding: finding.disagreement)
        far = f"{worst.kind} (squared differences {worst.disagreement:.3g} times what noise makes)"
        if worst.is_widened:
            left = f"the model leaves more unexplained than noise does, most in {far}"
            return f"{self.estimator}: {left}; intervals are wider."
        if worst.corrected == 0.0:
            return f"{self.estimator}: what was measured contradicts itself by more than noise explains, most in {far}."
        return (
            f"{self.estimator}: what was measured differs from what the answers assume by more than noise explains, "
            f"most for {far}; {worst.corrected:.0%} of it was taken out of the answers, and their intervals are wider."
        )

    def __str__(self) -> str:
        if not self.findings:
            return self.words
        width = max(len(finding.kind) for finding in self.findings)
        lines = [f"{'kind of question':<{width}}  {'checks':>7}  {'disagreement':>12}  {'corrected':>9}"]
        for one in self.findings:
            mark = "" if one.is_good else "  more than noise explains"
            lines.append(
                f"{one.kind:<{width}}  {one.questions:>7,}  {one.disagreement:>12.2f}  {one.corrected:>9.0%}{mark}"
            )
        return "\n".join([*lines, self.words])

    def to_dict(self) -> dict[str, object]:
        """Return it as plain data."""
        found = [finding.to_dict() for finding in self.findings]
        return {"estimator": self.estimator, "is_good": self.is_good, "words": self.words, "findings": found}
