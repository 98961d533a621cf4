"""Generated tables with columns of many declared types and odd values, for whatever counts tables where they lie."""

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal
from random import Random
from typing import Any

import pyarrow as pa

import veilcube as vc
from veilcube.schema import Attribute

Value = Any
Made = tuple[Attribute, list[Value], list[Value]]


@dataclass(frozen=True)
class Kind:
    """A declared type: as Arrow and as a database names it, and what makes an attribute, tame values, and odd ones."""

    arrow: pa.DataType
    declared: str
    make: Callable[[Random, str, Mapping[str, Any]], Made]
    options: Mapping[str, Any] = field(default_factory=dict)


def _whole(random: Random, name: str, policy: Mapping[str, Any]) -> Made:
    low = random.choice([-3, 0, 1990])
    attribute = vc.Ordinal(name, low, low + 6, **policy)
    return attribute, list(range(low, low + 7)), [low - 1, low + 7, 2**15 - 1, -(2**15)]


def _whole_year(random: Random, name: str, policy: Mapping[str, Any]) -> Made:
    return vc.Ordinal(name, "2019", "2022", unit="year", **policy), [2019, 2020, 2022], [2018, 2023, 1, -50]


def _float(random: Random, name: str, policy: Mapping[str, Any]) -> Made:
    odd = [math.nan, math.inf, -math.inf, 1e300, -1e300, 0.5, -7.25, 2.0**60]
    if random.random() < 0.4:
        return vc.Ordinal(name, -1, 5, **policy), [-1.0, -0.0, 0.0, 4.0, 5.0], odd
    edges = [-1, 0, 0.1, 0.3, 2, 7.5]
    return vc.Ordinal(name, edges=edges, **policy), [-1.0, -0.0, 0.1, 0.25, 0.3, 1.75, 7.5], [*odd, 7.75, -1.5]


def _decimal(random: Random, name: str, policy: Mapping[str, Any]) -> Made:
    odd = [Decimal("123456.789"), Decimal("-1.001"), Decimal("5.001")]
    tame = [Decimal(text) for text in ("-1.000", "0.000", "2.000", "5.000")]
    if random.random() < 0.4:
        return vc.Ordinal(name, -1, 5, **policy), tame, odd
    return vc.Ordinal(name, edges=[-1, 0.1, 0.3, 5], **policy), [*tame, Decimal("0.100"), Decimal("0.299")], odd


def _boolean(random: Random, name: str, policy: Mapping[str, Any]) -> Made:
    if random.random() < 0.5:
        return vc.Ordinal(name, 0, 1, **policy), [True, False], []
    return vc.Nominal(name, ["True", "false", "7"], **_nominal(policy)), [True, False], []


NUMBERS_AND_WORDS = ["7", "007", "1.5", "TRUE", "2024-01-05"]
NAMES = ["a", "A", "b", "ä", "quote's", 'quo"te', "back\\slash", *NUMBERS_AND_WORDS, "per%cent", "𝄞{x}"]
TAME_TEXTS = [*NAMES, " a", "b  ", "7.0", "+7", "01.50", "true", "True", "2024-01-05 00:00:00", "\tä"]
ODD_TEXTS = ["", "  ", "B", "Ä", "a b", "0E1", "-7", "2024-01-05 00:00:01", "false", "_", "aa", "\n"]


def _text(random: Random, name: str, policy: Mapping[str, Any]) -> Made:
    values = random.sample(NAMES, 9)
    given = vc.Nominal(name, values, **_nominal(policy))
    return given, values, [*TAME_TEXTS, *ODD_TEXTS]


def _codes(random: Random, name: str, policy: Mapping[str, Any]) -> Made:
    return vc.Nominal(name, ["-1", "007", "10", "x"], **_nominal(policy)), [-1, 7, 10], [0, 8, 70, -7]


def _code_floats(random: Random, name: str, policy: Mapping[str, Any]) -> Made:
    values = ["-1", "007", "10", "1.5", "0.10", "x"]
    return vc.Nominal(name, values, **_nominal(policy)), [-1.0, 7.0, 10.0, 1.5, 0.1], [0.25, -0.0, math.inf, math.nan]


def _code_decimals(random: Random, name: str, policy: Mapping[str, Any]) -> Made:
    values = ["-1", "007", "10", "1.50", "x"]
    tame = [Decimal(text) for text in ("-1.000", "7.000", "10.000", "1.500")]
    return vc.Nominal(name, values, **_nominal(policy)), tame, [Decimal("0.000"), Decimal("7.001")]


def _day(random: Random, name: str, policy: Mapping[str, Any]) -> Made:
    odd = [date(1, 1, 1), date(9999, 12, 31), date(2018, 12, 31), date(2021, 3, 1)]
    tame = [date(2019, 1, 1) + timedelta(days=random.randrange(780)) for _ in range(20)]
    if random.random() < 0.3:
        return vc.Nominal(name, ["2024-01-05", "2024-01-06", "x"], **_nominal(policy)), [date(2024, 1, 5)], odd
    return _calendar(random, name, policy), tame, odd


def _calendar(random: Random, name: str, policy: Mapping[str, Any]) -> Attribute:
    unit = random.choice(["day", "month", "year"])
    return vc.Ordinal(name, "2019-01", "2021-02", unit=unit, **policy)


def _moment(random: Random, name: str, policy: Mapping[str, Any]) -> Made:
    odd = [datetime(1, 1, 1), datetime(1969, 12, 31, 23, 59, 59, 999999), datetime(9999, 12, 31, 23)]
    tame = [datetime(2019, 1, 1) + timedelta(minutes=random.randrange(780 * 1440)) for _ in range(20)]
    return _calendar(random, name, policy), [*tame, datetime(2019, 1, 31, 23, 59, 59, 999999)], odd


def _instant(random: Random, name: str, policy: Mapping[str, Any]) -> Made:
    attribute, tame, odd = _moment(random, name, policy)
    return attribute, [one.replace(tzinfo=UTC) for one in tame], [one.replace(tzinfo=UTC) for one in odd]


def _nominal(policy: Mapping[str, Any]) -> dict[str, Any]:
    return dict(policy) | ({"outside": "other"} if policy["outside"] == "clip" else {})


KINDS = (
    Kind(pa.int16(), "smallint", _whole),
    Kind(pa.int32(), "int", _whole),
    Kind(pa.int64(), "bigint", _whole_year),
    Kind(pa.float64(), "double precision", _float),
    Kind(pa.float32(), "real", _float),
    Kind(pa.decimal128(12, 3), "decimal(12,3)", _decimal),
    Kind(pa.bool_(), "boolean", _boolean),
    Kind(pa.string(), "text", _text),
    Kind(pa.string(), "varchar(40)", _text),
    Kind(pa.string(), "char(24)", _text),
    Kind(pa.int32(), "int", _codes),
    Kind(pa.float64(), "double precision", _code_floats),
    Kind(pa.decimal128(12, 3), "decimal(12,3)", _code_decimals),
    Kind(pa.date32(), "date", _day),
    Kind(pa.timestamp("us"), "timestamp", _moment),
    Kind(pa.timestamp("us", "UTC"), "timestamp with time zone", _instant),
)
PERSONS = (
    (pa.string(), "text", ["ann", " ann", "Ann", "bob", "7", "07", "7.0", "-0", "0", "é", "e\u0301", "x\x1fy"]),
    (pa.int64(), "bigint", [0, 7, -7, 2**53 + 1, 2**53, 12]),
    (pa.decimal128(12, 3), "decimal(12,3)", [Decimal("7.000"), Decimal("7.500"), Decimal("0.000"), Decimal("-12.340")]),
)


@dataclass(frozen=True)
class DeclaredTable:
    """A generated table: as Arrow, with the types that a database is to declare, and a schema for it."""

    schema: vc.Schema
    rows: pa.Table
    declared: Mapping[str, str]
    groups: Mapping[str, int]

    @property
    def values(self) -> list[tuple[Value, ...]]:
        """The rows, as Python writes them."""
        return list(zip(*(column.to_pylist() for column in self.rows.columns), strict=True))


def generated(seed: int, rows: int = 400, kinds: Sequence[Kind] = KINDS) -> DeclaredTable:
    """Make a table of four attributes and a person, with odd values where policies take them, and sometimes beyond."""
    random = Random(seed)
    # Every kind comes up: seeds go round the list, and the rest is drawn.
    first = kinds[seed % len(kinds)]
    chosen = [first, *random.sample([kind for kind in kinds if kind is not first], 3)]
    random.shuffle(chosen)
    attributes, columns, declared = [], {}, {}
    for place, kind in enumerate(chosen):
        name = f"Col {place}"
        outside, missing = (
            random.choice(["reject", "clip", "other", "other"]),
            random.choice(["reject", "cell", "cell"]),
        )
        policy = {"outside": outside, "missing": missing}
        attribute, tame, odd = kind.make(random, name, policy)
        takes_all = attribute.outside != "reject" and attribute.missing == "cell"
        pool = [*tame * 3, *odd] if takes_all or random.random() < 0.15 else tame
        drawn = [random.choice(pool) for _ in range(rows)]
        if attribute.missing == "cell":
            drawn = [None if random.random() < 0.05 else value for value in drawn]
        attributes.append(attribute)
        columns[name] = pa.array(drawn, kind.arrow)
        declared[name] = kind.declared
    arrow, column_type, people = random.choice(PERSONS)
    columns["Who"] = pa.array([random.choice(people) for _ in range(rows)], arrow)
    declared["Who"] = column_type
    nominal = [attribute.name for attribute in attributes if isinstance(attribute, vc.Nominal)]
    return DeclaredTable(vc.Schema(attributes), pa.table(columns), declared, dict.fromkeys(nominal[:1], 2))
