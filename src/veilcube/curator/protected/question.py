"""A question to a protected table: which rows, what about them, and a key under which its answer is found again."""

import hashlib
import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property

from veilcube.curator.protected.canonical_region import canonical_region, region_to_data
from veilcube.privacy import PrivacyUnit
from veilcube.schema import Region, Schema

LONGEST_WORDS = 300


@dataclass(frozen=True, eq=False)
class Question:
    """What is asked (``kind`` and ``details``, plain data for JSON) of the rows of a region.

    Two questions with equal plain data, schema and unit must have the same exact answer on every table: a stored
    answer to one is given for the other.
    """

    schema: Schema
    region: Region
    kind: str
    details: Mapping[str, object] = field(default_factory=dict)

    def __post_init__(self) -> None:
        object.__setattr__(self, "region", canonical_region(self.region))

    @cached_property
    def data(self) -> dict[str, object]:
        """The question as plain data."""
        return {"kind": self.kind, **self.details, "where": region_to_data(self.schema, self.region)}

    def key(self, unit: PrivacyUnit) -> str:
        """Return a digest of the question, its schema and whose rows are counted."""
        meaning = {"question": self.data, "schema": self.schema.fingerprint(), "unit": unit.to_dict()}
        return hashlib.sha256(json.dumps(meaning, sort_keys=True, allow_nan=False).encode()).hexdigest()

    @property
    def words(self) -> str:
        """The question for people, for the purpose of its charge."""
        is_count = self.kind == "moment" and not self.details.get("powers")
        told = ", ".join(f"{name} {_told(value)}" for name, value in self.details.items() if value)
        text = f"{'count' if is_count else self.kind}{f' ({told})' if told else ''} of {self._where()}"
        return text if len(text) <= LONGEST_WORDS else f"{text[: LONGEST_WORDS - 4]} ..."

    def _where(self) -> str:
        boxes = []
        for box in region_to_data(self.schema, self.region):
            parts = []
            for name, runs in box.items():
                labels = self.schema[name].labels()
                shown = [labels[a] if a == b else f"{labels[a]}..{labels[b]}" for a, b in runs]
                parts.append(f"{name} is {' or '.join(shown)}")
            boxes.append(" and ".join(parts))
        return f"rows where {'; or '.join(boxes)}" if any(boxes) else "all rows"


def _told(value: object) -> str:
    if isinstance(value, Mapping):
        return " ".join(f"{name}^{power}" for name, power in value.items())
    return " ".join(map(str, value)) if isinstance(value, list | tuple) else str(value)
