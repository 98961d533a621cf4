"""A question to a protected table: which rows, what about them, and a key under which its answer is found again."""

import hashlib
import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property

from veilcube.privacy import PrivacyUnit
from veilcube.record.questions.canonical_region import canonical_region, region_to_data
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
        return shortened(f"{self._what()} of {self._where()}", LONGEST_WORDS)

    def _what(self) -> str:
        told, by = self.details, _listed(self.details.get("by"))
        name, each = told.get("attribute"), f" by {by}" if by else ""
        if self.kind == "rank":
            end = {"largest": "maximum", "smallest": "minimum"}.get(str(told.get("of")), "rank")
            rank = told.get("rank")
            return f"{end} of {name}" if rank == 1 else f"rank {rank} from the {end} of {name}"
        if self.kind == "quantiles":
            return f"quantiles {_listed(told.get('quantiles'))} of {name}"
        powers = told.get("powers")
        if self.kind in ("moment", "mean") and isinstance(powers, Mapping):
            product = " x ".join(other if power == 1 else f"{other}^{power}" for other, power in powers.items())
            what = "mean" if self.kind == "mean" else "sum"
            return f"{what} of {product}{each}" if product else f"count{each}"
        # A distributive query has a number of its own, since functions cannot be compared.
        rest = ", ".join(f"{other} {_listed(value)}" for other, value in told.items() if value and other != "asked")
        return f"{self.kind} ({rest})" if rest else self.kind

    def _where(self) -> str:
        boxes = []
        for box in region_to_data(self.schema, self.region):
            parts = []
            for name, runs in box.items():
                label = self.schema[name].label
                shown = [label(a) if a == b else f"{label(a)}..{label(b)}" for a, b in runs]
                parts.append(f"{name} is {' or '.join(shown)}")
            boxes.append(" and ".join(parts))
        return f"rows where {'; or '.join(boxes)}" if any(boxes) else "all rows"


def shortened(words: str, longest: int) -> str:
    """Return words, cut where they are longer than that."""
    return words if len(words) <= longest else f"{words[: longest - 4]} ..."


def _listed(value: object) -> str:
    return ", ".join(map(str, value)) if isinstance(value, list | tuple) else "" if value is None else str(value)
