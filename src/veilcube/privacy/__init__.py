"""The promise: neighbours, units, budgets, events and what they cost, and the law of the noise."""

from veilcube.privacy.accountant import epsilon_of
from veilcube.privacy.budget import LARGEST_EPSILON, Budget, EpsilonLike, read_epsilon, show_fraction, write_fraction
from veilcube.privacy.calibration import scale_for, unit_sensitivity
from veilcube.privacy.event import Event, LaplaceEvent, ParallelEvent, SequentialEvent, read_event
from veilcube.privacy.neighbours import Neighbours
from veilcube.privacy.statement import PrivacyStatement
from veilcube.privacy.unit import PrivacyUnit

__all__ = [
    "LARGEST_EPSILON",
    "Budget",
    "EpsilonLike",
    "Event",
    "LaplaceEvent",
    "Neighbours",
    "ParallelEvent",
    "PrivacyStatement",
    "PrivacyUnit",
    "SequentialEvent",
    "epsilon_of",
    "read_epsilon",
    "read_event",
    "scale_for",
    "show_fraction",
    "unit_sensitivity",
    "write_fraction",
]
