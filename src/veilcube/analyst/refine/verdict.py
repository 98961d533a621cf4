"""What a check of facts found: rho beside epsilon, and the reasons in sentences."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from veilcube.analyst.refine.sentences import quoted

Floats = NDArray[np.float64]

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
