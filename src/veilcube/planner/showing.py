"""A plan as notebooks show it."""

from collections.abc import Sequence
from typing import Protocol

from veilcube.planner.comparison import Candidate
from veilcube.system import as_html, show_number


class Compared(Protocol):
    """What of a plan is shown."""

    @property
    def candidates(self) -> Sequence[Candidate]:
        """What was considered."""

    @property
    def searched(self) -> str:
        """What the search tried and left out."""


class ShownPlan:
    """Shows a plan with what it was compared with."""

    def _repr_html_(self: Compared) -> str:
        rows = [(one.strategy.name, one.summary, show_number(one.expected_error)) for one in self.candidates]
        head = ("considered", "what it measures", "expected error")
        return as_html(repr(self), head, rows, self.searched, numbers=["expected error"])
