"""A protected table that lies elsewhere, asked as a local one is: conditions go over as cells, noisy answers come back.

What is asked is charged to the name of the key. Each question has a name of its own, under which it is sent again if
the connection is lost, so that it is not charged twice.
"""

from collections.abc import Iterator, Mapping, Sequence
from fractions import Fraction
from itertools import product
from math import inf, prod
from secrets import token_hex
from typing import Any, cast

from veilcube.errors import QueryError
from veilcube.privacy import Budget, Currency, EpsilonLike, Neighbours, PrivacyUnit, RankMethod, write_fraction
from veilcube.query import Answer, Answers, Query, RankAnswer, RankAnswers, read_confidence, read_query, read_sql
from veilcube.record import region_to_data
from veilcube.schema import Schema, read_groupings
from veilcube.service.base import ServiceError
from veilcube.service.client.answers import read_groups, read_rank, read_ranks, read_single
from veilcube.service.client.transport import UNREACHABLE, Transport
from veilcube.system import read_flag, read_text

Steps = tuple[Mapping[str, object], ...]
Amounts = Mapping[str, EpsilonLike | None]


class RemoteTable:
    """A protected table of a service: some of its rows, that answer with noise and show nothing else."""

    def __init__(
        self, transport: Transport, name: str, facts: Mapping[str, Any], schema: Schema, steps: Steps = ()
    ) -> None:
        self._transport, self.name, self._facts, self._schema, self._steps = transport, name, facts, schema, steps

    @classmethod
    def whole(cls, transport: Transport, name: str) -> "RemoteTable":
        """Return the table with all rows and attributes in view."""
        facts = transport.get("tables", name)
        return cls(transport, name, facts, Schema.from_dict(facts["schema"]))

    def __repr__(self) -> str:
        return f"RemoteTable({self.name!r} at {self._transport.url}: {', '.join(self._schema.names)})"

    @property
    def schema(self) -> Schema:
        """The public description of the attributes in view."""
        return self._schema

    @property
    def unit(self) -> PrivacyUnit:
        """Whose presence answers hide."""
        return PrivacyUnit.from_dict(self._facts["unit"])

    @property
    def neighbours(self) -> Neighbours:
        """Which tables answers do not tell apart."""
        return Neighbours(self._facts["neighbours"])

    @property
    def budget(self) -> Budget:
        """The dataset's budget and what was spent of it, now."""
        return _budget(self._transport.get("tables", self.name)["budget"])

    @property
    def share(self) -> Budget | None:
        """What you may spend of the budget and what you spent of it, now; None if nobody granted a share."""
        found = self._transport.get("tables", self.name)["share"]
        return None if found is None else _budget(found)

    def where(self, condition: Query | None = None, /, **conditions: object) -> "RemoteTable":
        """Narrow to the rows that meet a condition, as ``ProtectedTable.where`` does."""
        if condition is not None and conditions:
            raise QueryError("give the condition either as one argument or by keywords, not both")
        if isinstance(condition, str) and read_sql(self._schema, condition).group_by:
            raise QueryError("where takes a condition without GROUP BY; group with partition, or noisy_marginal")
        chosen = read_query(self._schema, conditions if condition is None else condition)
        return self._after({"region": region_to_data(self._schema, chosen)})

    def select(self, *names: str | Sequence[str]) -> "RemoteTable":
        """Keep only the named attributes in view; the rows stay the same, earlier conditions included."""
        chosen = _names(self._schema, names, "select")
        kept = Schema([one for one in self._schema if one.name in chosen])
        return self._after({"select": chosen}, kept)

    def partition(self, *names: str | Sequence[str]) -> "RemotePartition":
        """Split into parts that are paid for once, not each: by values of attributes, or by a level ("job:Level 1")."""
        groupings = read_groupings(self._schema, _flat(self._schema, names, "a partition"))
        return RemotePartition(self, {one.name: one.labels for one in groupings})

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
        return self._answer("count", _offer(epsilon, delta, rho), confidence, fresh)

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
        """Sum an ordinal attribute, as ``ProtectedTable.noisy_sum`` does."""
        return self._answer("sum", _offer(epsilon, delta, rho), confidence, fresh, column=self._column(attribute))

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
        """Estimate the mean of an ordinal attribute over the rows that have a value."""
        return self._answer("mean", _offer(epsilon, delta, rho), confidence, fresh, column=self._column(attribute))

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
        if not isinstance(powers, Mapping):
            raise QueryError('a moment is a mapping from attributes to powers, such as {"height": 1, "weight": 1}')
        return self._answer("moment", _offer(epsilon, delta, rho), confidence, fresh, powers=dict(powers))

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
        how = {"column": self._column(attribute), "method": str(method), "interval": _amount(interval)}
        return read_rank(self._ask("max", _offer(epsilon, delta, rho), confidence, fresh, **how))

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
        how = {"column": self._column(attribute), "method": str(method), "interval": _amount(interval)}
        return read_rank(self._ask("min", _offer(epsilon, delta, rho), confidence, fresh, **how))

    def noisy_quantile(
        self,
        attribute: str,
        quantile: float | None = None,
        *,
        epsilon: EpsilonLike | None = None,
        delta: EpsilonLike | None = None,
        rho: EpsilonLike | None = None,
        rank: int | None = None,
        method: str | None = None,
        interval: EpsilonLike | None = None,
        confidence: float = 0.95,
        fresh: bool = False,
    ) -> RankAnswer:
        """Draw a quantile (0.5 is the median, the default) or, by ``rank``, the k-th largest value."""
        how = {"column": self._column(attribute), "quantile": quantile, "rank": rank, "interval": _amount(interval)}
        named = None if method is None else str(method)
        return read_rank(self._ask("quantile", _offer(epsilon, delta, rho), confidence, fresh, method=named, **how))

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
        """Find many quantiles for one epsilon, as ``ProtectedTable.noisy_quantiles`` does."""
        how = {"column": self._column(attribute), "quantiles": [float(one) for one in quantiles], "rows": rows}
        return read_ranks(self._ask("quantiles", _offer(epsilon, delta, rho), confidence, fresh, method=method, **how))

    def _answer(self, kind: str, offer: Amounts, confidence: float, fresh: bool, **how: object) -> Answer:
        return cast(Answer, read_single(self._ask(kind, offer, confidence, fresh, **how), inf))

    def _ask(self, kind: str, offer: Amounts, confidence: float, fresh: bool, **how: object) -> dict[str, Any]:
        body = {"steps": list(self._steps), "confidence": read_confidence(confidence), "request": token_hex(16)}
        body |= {name: value for name, value in {**offer, **how}.items() if value is not None}
        if read_flag(fresh, "fresh"):
            body["fresh"] = True
        try:
            found = self._transport.post(body, "tables", self.name, kind)
        except ServiceError as problem:
            if problem.code != UNREACHABLE:
                raise
            found = self._transport.post(body, "tables", self.name, kind)  # answered already, it costs nothing
        return dict(found["outcome"]["answer"])

    def _after(self, step: Mapping[str, object], schema: Schema | None = None) -> "RemoteTable":
        return RemoteTable(self._transport, self.name, self._facts, schema or self._schema, (*self._steps, step))

    def _column(self, attribute: str) -> str:
        return self._schema.names[self._schema.axis(read_text(attribute, "the attribute"))]


class RemotePartition:
    """The parts of a protected table of a service; index it with a value, or a tuple of values."""

    def __init__(self, table: RemoteTable, labels: Mapping[str, tuple[str, ...]]) -> None:
        self._table, self._labels, self._names = table, labels, list(labels)

    def __repr__(self) -> str:
        return f"RemotePartition({self._table.name!r} by {', '.join(self._names)}: {len(self):,} parts)"

    def __len__(self) -> int:
        return prod(map(len, self._labels.values()))

    def __iter__(self) -> Iterator[str | tuple[str, ...]]:
        """Iterate over the labels of the parts."""
        for labels in product(*self._labels.values()):
            yield labels[0] if len(labels) == 1 else labels

    def __getitem__(self, value: object) -> RemoteTable:
        """Return one part as a table; what it spends is charged as far as it exceeds the dearest part."""
        values = value if isinstance(value, tuple) else (value,)
        if len(values) != len(self._names):
            raise QueryError(f"a part is named by one value of each of {', '.join(self._names)}")
        part = {
            name: one if isinstance(one, str | int | float) else str(one)
            for name, one in zip(self._names, values, strict=True)
        }
        return self._table._after({"part": part})

    def items(self) -> Iterator[tuple[str | tuple[str, ...], RemoteTable]]:
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
        return self._answers("count", _offer(epsilon, delta, rho), confidence, fresh)

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
        """Sum an attribute in every part, all for one epsilon."""
        column = self._table._column(attribute)
        return self._answers("sum", _offer(epsilon, delta, rho), confidence, fresh, column=column)

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
        column = self._table._column(attribute)
        return self._answers("mean", _offer(epsilon, delta, rho), confidence, fresh, column=column)

    def _answers(self, kind: str, offer: Amounts, confidence: float, fresh: bool, **how: object) -> Answers:
        return read_groups(self._table._ask(kind, offer, confidence, fresh, by=self._names, **how), inf)


def _offer(epsilon: EpsilonLike | None, delta: EpsilonLike | None, rho: EpsilonLike | None) -> Amounts:
    return {"epsilon": _amount(epsilon), "delta": _amount(delta), "rho": _amount(rho)}


def _amount(given: EpsilonLike | None) -> EpsilonLike | None:
    return write_fraction(given) if isinstance(given, Fraction) else given


def _names(schema: Schema, given: Sequence[str | Sequence[str]], what: str) -> list[str]:
    return [schema.names[schema.axis(name)] for name in _flat(schema, given, what)]


def _flat(schema: Schema, given: Sequence[str | Sequence[str]], what: str) -> list[str]:
    flat = [name for one in given for name in ([one] if isinstance(one, str) else one)]
    if not flat:
        raise QueryError(f"{what} needs at least one attribute of {', '.join(schema.names)}")
    return flat


def _budget(found: Mapping[str, str]) -> Budget:
    return Budget(Fraction(found["total"]), Fraction(found["spent"]), Currency(found["currency"]))
