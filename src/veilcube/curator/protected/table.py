"""What an analyst holds: a table and its partitions, to narrow, group and ask; every answer is noisy, paid for, stored.

None of it holds private rows: those stay with the private view, which no attribute of these objects leads to, nor the
traceback of what they refuse.
"""

from collections.abc import Iterator, Mapping, Sequence
from typing import cast
from weakref import WeakKeyDictionary

from veilcube.curator.protected.desk import Desk, Offer
from veilcube.curator.protected.distributive import ask_distributive
from veilcube.curator.protected.divisions import Division, labels_of, number_of_parts
from veilcube.curator.protected.extremes import RankQuestion, ask_rank
from veilcube.curator.protected.quantiles import ask_quantile, ask_quantiles
from veilcube.curator.protected.view import View
from veilcube.errors import QueryError
from veilcube.privacy import Budget, EpsilonLike, Private, RankMethod, leaves_no_trace
from veilcube.query import Answer, Answers, DistributiveQuery, Query, RankAnswer, RankAnswers, read_query, read_sql
from veilcube.schema import Schema
from veilcube.system import read_text

# The view behind each face. It is kept here and not on the face, so that who holds a face holds nothing private.
_VIEWS: "WeakKeyDictionary[ProtectedTable | Partition, View]" = WeakKeyDictionary()


def private_view(face: "ProtectedTable | Partition") -> View:
    """Return the private view behind a face. PRIVATE: for the curator's side alone."""
    return _VIEWS[face]


class ProtectedTable(Private):
    """Private rows behind a budget: some of them, that answer with noise and show nothing else."""

    def __init__(self, view: View) -> None:
        _VIEWS[self] = view

    @classmethod
    def whole(cls, desk: Desk) -> "ProtectedTable":
        """Return the table with all rows and attributes in view."""
        return cls(View.whole(desk))

    def __repr__(self) -> str:
        return f"ProtectedTable('{private_view(self).desk.dataset}': {', '.join(self.schema.names)}; rows not shown)"

    @property
    def schema(self) -> Schema:
        """The public description of the attributes in view."""
        return private_view(self).schema

    @property
    @leaves_no_trace
    def budget(self) -> Budget:
        """The dataset's budget and what was spent of it."""
        desk = private_view(self).desk
        return desk.ledger.budget(desk.dataset)

    @leaves_no_trace
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
        return ProtectedTable(private_view(self).narrowed(chosen))

    @leaves_no_trace
    def select(self, *names: str | Sequence[str]) -> "ProtectedTable":
        """Keep only the named attributes in view; the rows stay the same, earlier conditions included."""
        chosen = _flat(names)
        if not chosen:
            raise QueryError(f"select needs at least one attribute of {', '.join(self.schema.names)}")
        return ProtectedTable(private_view(self).selected(chosen))

    @leaves_no_trace
    def partition(
        self,
        *names: str | Sequence[str],
        bands: Mapping[str, Sequence[object]] | None = None,
        conditions: Mapping[str, Query] | Sequence[Query] | None = None,
    ) -> "Partition":
        """Split into parts that share no row, which are paid for once, not each.

        One part for each value of an attribute, or of several, or for each group of a level ("job:Level 1"). ``bands``
        tell where bands of ordinal attributes begin, ``{"age": [18, 65]}``. Or one part for each of ``conditions``, a
        mapping from labels, that no row meets two of.
        """
        view = private_view(self)
        return Partition(view, view.divided(_flat(names), bands, conditions))

    def noisy_count(
        self,
        *,
        epsilon: EpsilonLike | None = None,
        delta: EpsilonLike | None = None,
        rho: EpsilonLike | None = None,
        confidence: float = 0.95,
        fresh: bool = False,
    ) -> Answer:
        """Count the rows, for the price of epsilon; a stored answer that is as accurate is free unless ``fresh``."""
        return cast(Answer, private_view(self).ask_moment({}, None, Offer(epsilon, delta, rho), confidence, fresh))

    def noisy_sum(
        self,
        attribute: str,
        *,
        epsilon: EpsilonLike | None = None,
        delta: EpsilonLike | None = None,
        rho: EpsilonLike | None = None,
        confidence: float = 0.95,
        fresh: bool = False,
    ) -> Answer:
        """Sum an ordinal attribute; a bin counts as its middle, a value that is missing or outside the schema as 0.

        The noise grows with the largest value in view, so a condition that narrows the attribute makes it smaller.
        The interval is about the noise; it does not cover where in their bins values lie.
        """
        powers = {read_text(attribute, "the attribute"): 1}
        return cast(Answer, private_view(self).ask_moment(powers, None, Offer(epsilon, delta, rho), confidence, fresh))

    def noisy_mean(
        self,
        attribute: str,
        *,
        epsilon: EpsilonLike | None = None,
        delta: EpsilonLike | None = None,
        rho: EpsilonLike | None = None,
        confidence: float = 0.95,
        fresh: bool = False,
    ) -> Answer:
        """Estimate the mean of an ordinal attribute over the rows that have a value, from two noisy sums."""
        powers = {read_text(attribute, "the attribute"): 1}
        return cast(
            Answer,
            private_view(self).ask_moment(powers, None, Offer(epsilon, delta, rho), confidence, fresh, is_mean=True),
        )

    def noisy_moment(
        self,
        powers: Mapping[str, int],
        *,
        epsilon: EpsilonLike | None = None,
        delta: EpsilonLike | None = None,
        rho: EpsilonLike | None = None,
        confidence: float = 0.95,
        fresh: bool = False,
    ) -> Answer:
        """Sum a product of powers of ordinal attributes, such as ``{"height": 1, "weight": 1}``."""
        return cast(Answer, private_view(self).ask_moment(powers, None, Offer(epsilon, delta, rho), confidence, fresh))

    def noisy_marginal(
        self,
        *names: str,
        epsilon: EpsilonLike | None = None,
        delta: EpsilonLike | None = None,
        rho: EpsilonLike | None = None,
        confidence: float = 0.95,
        fresh: bool = False,
    ) -> Answers:
        """Count the rows of every combination of the named attributes' values, all for one epsilon."""
        return self.partition(*names).noisy_count(
            epsilon=epsilon, delta=delta, rho=rho, confidence=confidence, fresh=fresh
        )

    def noisy_max(
        self,
        attribute: str,
        *,
        epsilon: EpsilonLike | None = None,
        delta: EpsilonLike | None = None,
        rho: EpsilonLike | None = None,
        method: str = RankMethod.TILTED,
        interval: EpsilonLike | None = None,
        confidence: float = 0.95,
        fresh: bool = False,
    ) -> RankAnswer:
        """Draw the largest value of an ordinal attribute; ``interval`` is a share of epsilon for its lower end."""
        asked = RankQuestion.read(1, True, method, interval)
        return ask_rank(private_view(self), attribute, asked, Offer(epsilon, delta, rho), confidence, fresh)

    def noisy_min(
        self,
        attribute: str,
        *,
        epsilon: EpsilonLike | None = None,
        delta: EpsilonLike | None = None,
        rho: EpsilonLike | None = None,
        method: str = RankMethod.TILTED,
        interval: EpsilonLike | None = None,
        confidence: float = 0.95,
        fresh: bool = False,
    ) -> RankAnswer:
        """Draw the smallest value of an ordinal attribute; ``interval`` is a share of epsilon for its upper end."""
        asked = RankQuestion.read(1, False, method, interval)
        return ask_rank(private_view(self), attribute, asked, Offer(epsilon, delta, rho), confidence, fresh)

    def noisy_quantile(
        self,
        attribute: str,
        quantile: float | None = None,
        *,
        epsilon: EpsilonLike | None = None,
        delta: EpsilonLike | None = None,
        rho: EpsilonLike | None = None,
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
            return ask_quantile(
                private_view(self),
                attribute,
                0.5 if quantile is None else quantile,
                Offer(epsilon, delta, rho),
                confidence,
                fresh,
            )
        if quantile is not None:
            raise QueryError("give either a quantile, such as 0.5, or a rank, such as rank=10 for the tenth largest")
        asked = RankQuestion.read(rank, True, method, interval)
        return ask_rank(private_view(self), attribute, asked, Offer(epsilon, delta, rho), confidence, fresh)

    def noisy_quantiles(
        self,
        attribute: str,
        quantiles: Sequence[float],
        *,
        epsilon: EpsilonLike | None = None,
        delta: EpsilonLike | None = None,
        rho: EpsilonLike | None = None,
        method: str = "auto",
        rows: int | None = None,
        confidence: float = 0.95,
        fresh: bool = False,
    ) -> RankAnswers:
        """Find many quantiles for one epsilon, by a split, a tree or a staged tree, whichever should miss by less.

        ``rows`` is about how many rows there are, if that is public; otherwise 1/200 of epsilon may go to a noisy one.
        """
        return ask_quantiles(
            private_view(self), attribute, quantiles, Offer(epsilon, delta, rho), method, confidence, fresh, rows
        )

    def distributive(
        self,
        query: DistributiveQuery,
        attribute: str,
        *,
        by: Sequence[str] = (),
        epsilon: EpsilonLike | None = None,
        delta: EpsilonLike | None = None,
        rho: EpsilonLike | None = None,
        confidence: float = 0.95,
    ) -> Answer:
        """Ask a distributive query of every part that the attributes ``by`` cut, for one epsilon, and merge.

        The query's functions run on exact counts, so they must be the curator's own and do nothing but compute; what
        fails in them is paid for, since it tells something about the table.
        """
        return ask_distributive(private_view(self), query, attribute, by, Offer(epsilon, delta, rho), confidence)


class Partition(Private):
    """The parts of a protected table; index it with a label (a value, a group, a band), or a tuple of labels.

    Parts share no row. What is spent on single parts therefore costs the dataset the dearest part only; the ledger
    keeps the sums, so that this holds across sessions, processes and analysts who split in the same way.
    """

    def __init__(self, view: View, division: Division) -> None:
        _VIEWS[self] = view
        self._division = division

    def __repr__(self) -> str:
        names = ", ".join(self._division.axes)
        return f"Partition('{private_view(self).desk.dataset}' by {names}: {len(self):,} parts)"

    def __len__(self) -> int:
        return number_of_parts(self._division)

    def __iter__(self) -> Iterator[str | tuple[str, ...]]:
        """Iterate over the labels of the parts."""
        return labels_of(self._division)

    @leaves_no_trace
    def __getitem__(self, value: object) -> ProtectedTable:
        """Return one part as a protected table; what it spends is charged as far as it exceeds the dearest part."""
        values = value if isinstance(value, tuple) else (value,)
        return ProtectedTable(private_view(self).part(self._division, values))

    def items(self) -> Iterator[tuple[str | tuple[str, ...], ProtectedTable]]:
        """Iterate over the labels and the parts."""
        return ((label, self[label]) for label in self)

    def noisy_count(
        self,
        *,
        epsilon: EpsilonLike | None = None,
        delta: EpsilonLike | None = None,
        rho: EpsilonLike | None = None,
        confidence: float = 0.95,
        fresh: bool = False,
    ) -> Answers:
        """Count the rows of every part that the conditions leave, all for one epsilon."""
        return private_view(self).ask_parts(self._division, {}, Offer(epsilon, delta, rho), confidence, fresh)

    def noisy_sum(
        self,
        attribute: str,
        *,
        epsilon: EpsilonLike | None = None,
        delta: EpsilonLike | None = None,
        rho: EpsilonLike | None = None,
        confidence: float = 0.95,
        fresh: bool = False,
    ) -> Answers:
        """Sum an attribute in every part, as ``ProtectedTable.noisy_sum`` does, all for one epsilon."""
        powers = {read_text(attribute, "the attribute"): 1}
        return private_view(self).ask_parts(self._division, powers, Offer(epsilon, delta, rho), confidence, fresh)

    def noisy_mean(
        self,
        attribute: str,
        *,
        epsilon: EpsilonLike | None = None,
        delta: EpsilonLike | None = None,
        rho: EpsilonLike | None = None,
        confidence: float = 0.95,
        fresh: bool = False,
    ) -> Answers:
        """Estimate the mean of an attribute in every part, all for one epsilon."""
        powers = {read_text(attribute, "the attribute"): 1}
        offer = Offer(epsilon, delta, rho)
        return private_view(self).ask_parts(self._division, powers, offer, confidence, fresh, is_mean=True)


def _flat(names: Sequence[str | Sequence[str]]) -> list[str]:
    """Return names given one by one, or as one list."""
    if not all(isinstance(entry, str | Sequence) for entry in names):
        raise QueryError("attributes are named by texts, one by one or as one list")
    return [name for entry in names for name in ([entry] if isinstance(entry, str) else entry)]
