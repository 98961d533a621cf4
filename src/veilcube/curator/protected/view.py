"""The private view of a protected table: which rows are in view, and the one way by which mechanisms get to see them.

Measurements compose by adding up, those of parts of one partition by the dearest part
(docs/proofs/protected-tables.md, Theorems 2 and 3); what one of them costs, its mechanism says.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import cast

import numpy as np

from veilcube.curator.ledger import PartOf, StoredAnswer
from veilcube.curator.mechanisms import Protection, SumsMechanism
from veilcube.curator.protected.answering import answer_moment
from veilcube.curator.protected.desk import Desk, Offer
from veilcube.curator.protected.divisions import ByConditions, ByGroups, ByValues, Division, labels_of
from veilcube.curator.protected.parts import part_of, require_inside
from veilcube.errors import QueryError
from veilcube.laws import Noise
from veilcube.privacy import PrivacyStatement, Private, leaves_no_trace
from veilcube.query import Answer, Answers, Query, read_confidence, read_query
from veilcube.record import Moment, Question
from veilcube.schema import Box, Region, Schema, split_level
from veilcube.system import Integers, read_flag


@dataclass(frozen=True, eq=False, repr=False)
class View(Private):
    """Some of the private rows. PRIVATE: it stays on the curator's side, behind the table that an analyst holds.

    ``region`` are the rows in view, ``within`` the nested parts of partitions they lie in, ``visible`` the axes that
    further conditions and questions may name.
    """

    desk: Desk
    region: Region
    within: tuple[PartOf, ...]
    visible: tuple[int, ...]

    def __post_init__(self) -> None:
        require_inside(self.every_attribute, self.desk.unit, self.region, self.within)

    @classmethod
    def whole(cls, desk: Desk) -> "View":
        """Return all rows and attributes."""
        schema = desk.rows.schema
        return cls(desk, Region.everything(schema.shape), (), tuple(range(len(schema))))

    @property
    def schema(self) -> Schema:
        """The public description of the attributes in view."""
        return Schema([self.every_attribute.attributes[axis] for axis in self.visible])

    @property
    def every_attribute(self) -> Schema:
        """The public description of all attributes, in view or not."""
        return self.desk.rows.schema

    @property
    def is_part(self) -> bool:
        """Whether it is a part of a partition: then a row that is exchanged may leave one part and enter another.

        With neighbours "replace", sensitivities must here be twice those for one row that comes or goes (Theorem 3).
        """
        return bool(self.within)

    @property
    def protection(self) -> Protection:
        """What mechanisms promise about the rows in view: public."""
        return Protection(self.desk.unit, self.desk.neighbours, self.is_part)

    def narrowed(self, chosen: Region) -> "View":
        """Return the rows that lie in a region over the attributes in view as well."""
        return replace(self, region=self.region.intersect(self._lifted(chosen)))

    def selected(self, names: Sequence[str]) -> "View":
        """Return the same rows with only the named attributes in view."""
        return replace(self, visible=tuple(sorted(self.axes_of(names))))

    def divided(self, names: Sequence[str], bands: object, conditions: object) -> Division:
        """Return a division of all rows by what is in view: values, groups and bands, or conditions."""
        schema = self.every_attribute
        if conditions is not None:
            if names or bands is not None:
                raise QueryError("a partition is by conditions, or by attributes and bands; leave one of them out")
            return ByConditions.read(schema, conditions, self._condition)
        if bands is not None and not isinstance(bands, Mapping):
            raise QueryError(
                "bands= is a mapping from attributes to where their bands begin, such as {'age': [18, 65]}"
            )
        if not names and not bands:
            raise QueryError(f"a partition needs at least one attribute of {', '.join(self.schema.names)}")
        levels = [split_level(self.schema, name)[1] for name in [*names, *(bands or ())]]
        if bands is None and not any(level is not None for level in levels):
            return ByValues(schema, self.axes_of(names))
        return ByGroups.read(schema, names, bands or {})

    def _condition(self, condition: Query) -> Region:
        return self._lifted(read_query(self.schema, condition))

    def part(self, division: Division, values: Sequence[object]) -> "View":
        """Return one part of a division; what it spends counts as far as it exceeds the dearest."""
        # A part is named by what decides which rows are in it; conditions do not matter, they only narrow it.
        numbers, region = division.place(values)
        place = part_of(self.every_attribute, self.desk.unit, self.within[-1:], division.said, numbers)
        return replace(self, region=self.region.intersect(region), within=(*self.within, place))

    @leaves_no_trace
    def ask_moment(
        self,
        powers: Mapping[str, int],
        by: Sequence[int] | None,
        offer: Offer,
        confidence: float,
        fresh: bool,
        *,
        is_mean: bool = False,
    ) -> Answer | Answers:
        """Answer a linear question, by group if ``by`` names axes: what all of the noisy questions above are."""
        promise, confidence, fresh = self.desk.promise(offer), read_confidence(confidence), read_flag(fresh, "fresh")
        for name in powers if isinstance(powers, Mapping) else ():
            self.schema.axis(name)
        names = [self.every_attribute.names[axis] for axis in by or ()]
        moment = Moment.ask(self.every_attribute, self.region, powers, names, is_mean=is_mean)
        sums = SumsMechanism.claiming(moment, promise, self.protection)
        question, statement, noise = moment.question, sums.statement, sums.noise
        stored = None
        if not fresh:
            stored = self.desk.recall(question, statement, noise, lambda values: len(values) == moment.size)
        if stored is None:
            self.desk.rows.require_room(moment.axes)

            def draw() -> list[int]:
                return sums.draw(self.desk.rows.counts_within(self.region, moment.axes), self.desk.samplers)

            stored = self.measure(question, statement, draw, noise)
        return answer_moment(moment, stored, stored.noise or noise, confidence, by)

    @leaves_no_trace
    def ask_parts(
        self,
        division: Division,
        powers: Mapping[str, int],
        offer: Offer,
        confidence: float,
        fresh: bool,
        *,
        is_mean: bool = False,
    ) -> Answers:
        """Answer a linear question about every part of a division, all for one price.

        Parts by values are one measurement. Others are measured one by one, and charged at the dearest (Theorem 2): as
        long as the parts have spent alike, the first pays for all. A part that the conditions leave nobody in is 0.
        """
        if isinstance(division, ByValues):
            by = division.named
            return cast(Answers, self.ask_moment(powers, by, offer, confidence, fresh, is_mean=is_mean))
        views = [self.part(division, label if isinstance(label, tuple) else (label,)) for label in labels_of(division)]
        asked = [view for view in views if view.region.cells]
        if not asked:
            raise QueryError("the conditions leave no cell in any part; widen them")
        answers = iter([view.ask_moment(powers, None, offer, confidence, fresh, is_mean=is_mean) for view in asked])
        nobody = Answer(np.nan, np.nan, np.nan, confidence, np.nan) if is_mean else Answer(0, 0, 0, confidence, 0)
        found = [cast(Answer, next(answers)) if view.region.cells else nobody for view in views]
        shape = tuple(map(len, division.axes.values()))
        value, low, high, stddev = (
            np.array([getattr(one, name) for one in found], dtype=np.float64).reshape(shape)
            for name in ("value", "low", "high", "stddev")
        )
        words = next(one.privacy for one in found if one.privacy)
        return Answers(value, low, high, stddev, read_confidence(confidence), words, division.axes)

    def measure(
        self,
        question: Question,
        statement: PrivacyStatement,
        draw: Callable[[], Sequence[int]],
        noise: Noise | None = None,
    ) -> StoredAnswer:
        """Charge for a statement about the rows in view, draw, store and return: the door for every mechanism.

        ``draw`` is called once, after the charge is on disk, and nothing is read before.
        """
        return self.desk.measure(question, statement, draw, noise, self.within)

    def exact_counts_of(self, *names: str) -> Integers:
        """Return the exact counts over the named attributes' cells of the rows in view. PRIVATE: for mechanisms."""
        return self.desk.rows.counts_within(self.region, self.axes_of(list(names)))

    def axes_of(self, names: Sequence[str]) -> tuple[int, ...]:
        """Return the axes of attributes in view; refuses others and repeats."""
        axes = tuple(self.visible[self.schema.axis(name)] for name in names)
        if len(set(axes)) != len(axes):
            raise QueryError("an attribute is named twice; name each one once")
        return axes

    def _lifted(self, chosen: Region) -> Region:
        """Return a region over the attributes in view as one over all attributes, that counts no row twice."""
        shape = self.every_attribute.shape
        place = {axis: position for position, axis in enumerate(self.visible)}
        boxes = (
            Box(shape, tuple(box.chosen[place[axis]] if axis in place else None for axis in range(len(shape))))
            for box in chosen.boxes
        )
        return Region(shape, tuple(boxes)).disjoint()
