"""Refinement: answers made to obey known facts, and what facts that depend on the data cost in privacy."""

from veilcube.analyst.refine.facts import Fact
from veilcube.analyst.refine.linear import LinearRefinement, best_refinement
from veilcube.analyst.refine.privacy import refinement_privacy
from veilcube.analyst.refine.refine import refine
from veilcube.analyst.refine.refined import Refined
from veilcube.analyst.refine.refined_release import RefinedRelease, refine_release
from veilcube.analyst.refine.statement import RefinedStatement
from veilcube.analyst.refine.verdict import RefinementPrivacy

__all__ = [
    "Fact",
    "LinearRefinement",
    "Refined",
    "RefinedRelease",
    "RefinedStatement",
    "RefinementPrivacy",
    "best_refinement",
    "refine",
    "refine_release",
    "refinement_privacy",
]
