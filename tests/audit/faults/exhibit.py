"""What hangs in the museum: a small mechanism with one fault that real programs had, or its private counterpart."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any


@dataclass(frozen=True)
class Exhibit:
    """A mechanism, what it promises, and tables for it. ``found_by`` names every method that must find its fault.

    ``is_quick`` ones are audited in every run of the tests, with fewer trials; all of them in the slow tests.
    """

    name: str
    mechanism: Callable[..., Any]
    domain: Sequence[object]
    found_by: tuple[str, ...] = ()
    promise: dict[str, object] = field(default_factory=lambda: {"epsilon": 1})
    neighbours: str = "add-remove"
    records: int = 3
    trials: int = 20_000
    is_quick: bool = True

    @property
    def is_private(self) -> bool:
        """Whether nothing must be found."""
        return not self.found_by


BY_ALL = ("exact", "replay", "statistics")
