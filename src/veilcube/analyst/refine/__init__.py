"""Refinement: answers made to obey known facts, and what facts that depend on the data cost in privacy."""

from veilcube.analyst.refine.facts import Fact
from veilcube.analyst.refine.linear import LinearRefinement, best_refinement
from veilcube.analyst.refine.privacy import RefinementPrivacy, refinement_privacy
from veilcube.analyst.refine.refine import refine
from veilcube.analyst.refine.refined import Refined

__all__ = [
    "Fact",
    "LinearRefinement",
    "Refined",
    "RefinementPrivacy",
    "best_refinement",
    "refine",
    "refinement_privacy",
]
