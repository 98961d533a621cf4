"""The protected table: narrow it, group it, and ask; every answer is noisy, paid for, stored, and has its interval.

Claim: each measurement is an integer vector with independent discrete Laplace noise whose scale is its sensitivity over
epsilon (docs/proofs/protected-tables.md, Theorem 1); measurements compose by adding up, those of parts of one partition
by the dearest part (Theorems 2 and 3).
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import cast

import numpy as np
from numpy.typing import NDArray

from veilcube.curator.ledger import PartOf, StoredAnswer
from veilcube.curator.protected.answering import answer_moment
from veilcube.curator.protected.desk import Desk
from veilcube.curator.protected.distributive import ask_distributive
from veilcube.curator.protected.extremes import RankQuestion, ask_rank
from veilcube.curator.protected.moment import Moment
from veilcube.curator.protected.partition import Partition, require_inside
from veilcube.curator.protected.quantiles import ask_quantile, ask_quantiles
from veilcube.curator.protected.question import Question
from veilcube.errors import QueryError
from veilcube.privacy import (
    Budget,
    EpsilonLike,
    LaplaceEvent,
    PrivacyStatement,
    read_epsilon,
    scale_for,
    unit_sensitivity,
)
from veilcube.privacy.rank_mechanisms import RankMethod
from veilcube.privacy.secrecy import Private, leaves_no_trace
from veilcube.query import Answer, Answers, Query, read_query, read_sql
from veilcube.query.confidence import read_confidence
from veilcube.query.distributive import DistributiveQuery
from veilcube.query.rank_answer import RankAnswer, RankAnswers
from veilcube.schema import Box, Region, Schema
from veilcube.system.arguments import read_flag, read_text

PROOF = "docs/proofs/protected-tables.md#theorem-1"


@dataclass(frozen=True, eq=False, repr=False)
class ProtectedTable(Private):
    """Private rows behind a budget: a view of some of them, that answers with noise and shows nothing else.

    ``region`` are the rows in view, ``within`` the nested parts of partitions they lie in, ``visible`` the axes that
    further conditions and questions may name.
    """

    desk: Desk
    region: Region
    within: tuple[PartOf, ...]
    visible: tuple[int, ...]

    def __post_init__(self) -> None:
        require_inside(self._all, self.desk.unit, self.region, self.within)

    @classmethod
    def whole(cls, desk: Desk) -> "ProtectedTable":
        """Return the table with all rows and attributes in view."""
        schema = desk.rows.schema
        return cls(desk, Region.everything(schema.shape), (), tuple(range(len(schema))))

    def __repr__(self) -> str:
        return f"ProtectedTable('{self.desk.dataset}': {', '.join(self.schema.names)}; rows not shown)"

    @property
    def schema(self) -> Schema:
        """The public description of the attributes in view."""
        return Schema([self._all.attributes[axis] for axis in self.visible])

    @property
    def budget(self) -> Budget:
        """The dataset's budget and what was spent of it."""
        return self.desk.ledger.budget(self.desk.dataset)

    @property
    def is_part(self) -> bool:
        """Whether it is a part of a partition: then a row that is exchanged may leave one part and enter another.

        With neighbours "replace", sensitivities must here be twice those for one row that comes or goes (Theorem 3).
        """
        return bool(self.within)

    @property
    def _all(self) -> Schema:
        return self.desk.rows.schema

    def where(self, condition: Query | None = None, /, **conditions: object) -> "ProtectedTable":
        """Narrow to the rows that meet a condition: SQL text, a mapping, or keywords; again and again, for all of them.

        ``table.where("age >= 30").where(sex="Female")`` are the women of 30 and more.
        """
        if condition is not None and conditions:
            raise QueryError("give the condition either as one argument or by keywords, not both")
        schema = self.schema
        if isinstance(condition, str) and read_sql(schema, condition).group_by:
            raise QueryError("where takes a condition without GROUP BY; group with partition, or noisy_marginal")
        chosen = read_query(schema, conditions if condition is None else condition)
        return replace(self, region=self.region.intersect(self._lifted(chosen)))

    def select(self, *names: str | Sequence[str]) -> "ProtectedTable":
        """Keep only the named attributes in view; the rows stay the same, earlier conditions included."""
        chosen = _flat(names)
        if not chosen:
            raise QueryError(f"select needs at least one attribute of {', '.join(self.schema.names)}")
        axes = self.axes_of(chosen)
        return replace(self, visible=tuple(sorted(axes)))

    def partition(self, *names: str | Sequence[str]) -> "Partition":
        """Split into one part for each value of an attribute, or of several; parts are paid for once, not each."""
        chosen = _flat(names)
        if not chosen:
            raise QueryError(f"a partition needs at least one attribute of {', '.join(self.schema.names)}")
        return Partition(self, self.axes_of(chosen))

    def noisy_count(self, *, epsilon: EpsilonLike, confidence: float = 0.95, fresh: bool = False) -> Answer:
        """Count the rows, for the price of epsilon; a stored answer that is as accurate is free unless ``fresh``."""
        return cast(Answer, self.ask_moment({}, None, epsilon, confidence, fresh))

    def noisy_sum(
        self, attribute: str, *, epsilon: EpsilonLike, confidence: float = 0.95, fresh: bool = False
    ) -> Answer:
        """Sum an ordinal attribute; a bin counts as its middle, a value that is missing or outside the schema as 0.

        The noise grows with the largest value in view, so a condition that narrows the attribute makes it smaller.
        The interval is about the noise; it does not cover where in their bins values lie.
        """
        powers = {read_text(attribute, "the attribute"): 1}
        return cast(Answer, self.ask_moment(powers, None, epsilon, confidence, fresh))

    def noisy_mean(
        self, attribute: str, *, epsilon: EpsilonLike, confidence: float = 0.95, fresh: bool = False
    ) -> Answer:
        """Estimate the mean of an ordinal attribute over the rows that have a value, from two noisy sums."""
        powers = {read_text(attribute, "the attribute"): 1}
        return cast(Answer, self.ask_moment(powers, None, epsilon, confidence, fresh, is_mean=True))

    def noisy_moment(
        self, powers: Mapping[str, int], *, epsilon: EpsilonLike, confidence: float = 0.95, fresh: bool = False
    ) -> Answer:
        """Sum a product of powers of ordinal attributes, such as ``{"height": 1, "weight": 1}``."""
        return cast(Answer, self.ask_moment(powers, None, epsilon, confidence, fresh))

    def noisy_marginal(
        self, *names: str, epsilon: EpsilonLike, confidence: float = 0.95, fresh: bool = False
    ) -> Answers:
        """Count the rows of every combination of the named attributes' values, all for one epsilon."""
        return self.partition(*names).noisy_count(epsilon=epsilon, confidence=confidence, fresh=fresh)

    def noisy_max(
        self,
        attribute: str,
        *,
        epsilon: EpsilonLike,
        method: str = RankMethod.TILTED,
        interval: EpsilonLike | None = None,
        confidence: float = 0.95,
        fresh: bool = False,
    ) -> RankAnswer:
        """Draw the largest value of an ordinal attribute; ``interval`` is a share of epsilon for its lower end."""
        asked = RankQuestion.read(1, True, method, interval)
        return ask_rank(self, attribute, asked, epsilon, confidence, fresh)

    def noisy_min(
        self,
        attribute: str,
        *,
        epsilon: EpsilonLike,
        method: str = RankMethod.TILTED,
        interval: EpsilonLike | None = None,
        confidence: float = 0.95,
        fresh: bool = False,
    ) -> RankAnswer:
        """Draw the smallest value of an ordinal attribute; ``interval`` is a share of epsilon for its upper end."""
        asked = RankQuestion.read(1, False, method, interval)
        return ask_rank(self, attribute, asked, epsilon, confidence, fresh)

    def noisy_quantile(
        self,
        attribute: str,
        quantile: float | None = None,
        *,
        epsilon: EpsilonLike,
        rank: int | None = None,
        method: str = RankMethod.PERMUTE_AND_FLIP,
        interval: EpsilonLike | None = None,
        confidence: float = 0.95,
        fresh: bool = False,
    ) -> RankAnswer:
        """Draw a quantile (0.5 is the median, the default) or, by ``rank``, the k-th largest value.

        ``method`` and ``interval``, a share of epsilon for the ends of an interval, are for ranks.
        """
        if rank is None:
            if interval is not None or not isinstance(method, str) or method != RankMethod.PERMUTE_AND_FLIP:
                raise QueryError("method and interval go with a rank; ask for rank=, or leave them out")
            return ask_quantile(self, attribute, 0.5 if quantile is None else quantile, epsilon, confidence, fresh)
        if quantile is not None:
            raise QueryError("give either a quantile, such as 0.5, or a rank, such as rank=10 for the tenth largest")
        asked = RankQuestion.read(rank, True, method, interval)
        return ask_rank(self, attribute, asked, epsilon, confidence, fresh)

    def noisy_quantiles(
        self,
        attribute: str,
        quantiles: Sequence[float],
        *,
        epsilon: EpsilonLike,
        method: str = "auto",
        rows: int | None = None,
        confidence: float = 0.95,
        fresh: bool = False,
    ) -> RankAnswers:
        """Find many quantiles for one epsilon, by a split, a tree or a refined tree, whichever should miss by less.

        ``rows`` is about how many rows there are, if that is public; otherwise 1/200 of epsilon may go to a noisy one.
        """
        return ask_quantiles(self, attribute, quantiles, epsilon, method, confidence, fresh, rows)

    def distributive(
        self,
        query: DistributiveQuery,
        attribute: str,
        *,
        by: Sequence[str] = (),
        epsilon: EpsilonLike,
        confidence: float = 0.95,
    ) -> Answer:
        """Ask a distributive query of every part that the attributes ``by`` cut, for one epsilon, and merge.

        The query's functions run on exact counts, so they must be the curator's own and do nothing but compute; what
        fails in them is paid for, since it tells something about the table.
        """
        return ask_distributive(self, query, attribute, by, epsilon, confidence)

    @leaves_no_trace
    def ask_moment(
        self,
        powers: Mapping[str, int],
        by: Sequence[int] | None,
        epsilon: EpsilonLike,
        confidence: float,
        fresh: bool,
        *,
        is_mean: bool = False,
    ) -> Answer | Answers:
        """Answer a linear question, by group if ``by`` names axes: what all of the noisy questions above are."""
        price, confidence, fresh = read_epsilon(epsilon), read_confidence(confidence), read_flag(fresh, "fresh")
        for name in powers if isinstance(powers, Mapping) else ():
            self.schema.axis(name)
        names = [self._all.names[axis] for axis in by or ()]
        moment = Moment.ask(self._all, self.region, powers, names, is_mean=is_mean)
        statement, scale = self._claim(moment, price)
        stored = None
        if not fresh:
            stored = self.desk.recall(moment.question, statement, (scale,), lambda values: len(values) == moment.size)
        if stored is None:
            self.desk.rows.require_room(moment.axes)
            stored = self.measure(moment.question, statement, lambda: self._noisy(moment, scale), (scale,))
        return answer_moment(moment, stored, confidence, by)

    def measure(
        self,
        question: Question,
        statement: PrivacyStatement,
        draw: Callable[[], Sequence[int]],
        scales: Sequence[Fraction] = (),
    ) -> StoredAnswer:
        """Charge for a statement about the rows in view, draw, store and return: the door for every mechanism.

        ``draw`` is called once, after the charge is on disk, and nothing is read before.
        """
        return self.desk.measure(question, statement, draw, scales, self.within)

    def exact_counts_of(self, *names: str) -> NDArray[np.int64]:
        """Return the exact counts over the named attributes' cells of the rows in view. PRIVATE: for mechanisms."""
        return self.desk.rows.counts_within(self.region, self.axes_of(list(names)))

    def axes_of(self, names: Sequence[str]) -> tuple[int, ...]:
        """Return the axes of attributes in view; refuses others and repeats."""
        axes = tuple(self.visible[self.schema.axis(name)] for name in names)
        if len(set(axes)) != len(axes):
            raise QueryError("an attribute is named twice; name each one once")
        return axes

    def _claim(self, moment: Moment, epsilon: Fraction) -> tuple[PrivacyStatement, Fraction]:
        exchange = 2 * moment.heaviest if self.is_part else moment.heaviest_exchange
        # Where nothing can change, as for the number of rows that "replace" makes public, noise for 1 does no harm.
        sensitivity = max(unit_sensitivity(moment.heaviest, exchange, self.desk.unit, self.desk.neighbours), 1)
        scale = scale_for(epsilon, sensitivity)
        event = LaplaceEvent(sensitivity, scale)
        return PrivacyStatement(epsilon, self.desk.neighbours, self.desk.unit, event, PROOF), scale

    def _noisy(self, moment: Moment, scale: Fraction) -> list[int]:
        exact = moment.exact(self.desk.rows.counts_within(self.region, moment.axes))
        noise = self.desk.draw_noise(scale, (len(exact),)).tolist()
        return [value + error for value, error in zip(exact, noise, strict=True)]

    def _lifted(self, chosen: Region) -> Region:
        """Return a region over the attributes in view as one over all attributes."""
        shape = self._all.shape
        place = {axis: position for position, axis in enumerate(self.visible)}
        boxes = (
            Box(shape, tuple(box.axes[place[axis]] if axis in place else None for axis in range(len(shape))))
            for box in chosen.boxes
        )
        return Region(shape, tuple(boxes))


def _flat(names: Sequence[str | Sequence[str]]) -> list[str]:
    """Return names given one by one, or as one list."""
    if not all(isinstance(entry, str | Sequence) for entry in names):
        raise QueryError("attributes are named by texts, one by one or as one list")
    return [name for entry in names for name in ([entry] if isinstance(entry, str) else entry)]
