from .answers import LinearRefinement as LinearRefinement, Refined as Refined, best_refinement as best_refinement
from .facts import (
    Fact as Fact,
    FactDeviation as FactDeviation,
    FactSource as FactSource,
    FactTest as FactTest,
    RefinedStatement as RefinedStatement,
    RefinementPrivacy as RefinementPrivacy,
    read_sentence as read_sentence,
)
from .opening import open as open, open_release as open_release
from .privacy import refinement_privacy as refinement_privacy
from .refining import refine as refine
from .release import RefinedRelease as RefinedRelease
from .whole import refine_release as refine_release
