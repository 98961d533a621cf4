"""From a declared column to the cell of each value, in SQL: what ``normalising`` and ``binning`` say, for a database.

A column is taken only if its declared type leaves nothing open: whole numbers, decimals, floats, booleans, dates,
timestamps and text. Whether it is taken depends on schema and type alone, never on a value. Cells are numbers from 0;
a value that a policy refuses is one of ``REFUSED``.
"""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from veilcube.curator.placing import codes_of_numbers, is_beyond_floats, plain_spelling, plain_values
from veilcube.curator.pushdown.dialect import (
    BOOLEAN,
    DAY,
    DECIMAL,
    FAR_FUTURE,
    FAR_PAST,
    FLOAT,
    INSTANT,
    MOMENT,
    TEXT,
    WHOLE,
    Declared,
    Dialect,
)
from veilcube.curator.tables import MISSING, OUTSIDE, UNREADABLE
from veilcube.errors import SchemaError, TableError
from veilcube.schema import Attribute, Bins, Calendar, Nominal, Ordinal, WholeNumbers

# No calendar reaches it, and every database reads it.
_UNREADABLE_NUMBER = -(2**62)
_ISO_DAY = re.compile(r"\d{4}-\d{2}-\d{2}")
_FLOAT_IN_WORDS = re.compile(r"-?(\d+([.]\d+)?e[-+]?\d+|inf|nan)", re.IGNORECASE)
_WHOLE_PATTERN, _WHOLE_PLAIN = r"^[+]?(-?)0*([0-9]+)([.]0*)?$", r"\1\2"
_FRACTION_PATTERN, _FRACTION_PLAIN = r"^[+]?(-?)0*([0-9]*[.][0-9]*[1-9])0*$", r"\1\2"
_MIDNIGHT = r"[ T]00:00:00([.]0+)?$"
_EXACT_FLOATS = 2**53


@dataclass(frozen=True)
class Placing:
    """One attribute in SQL: a column ``normal`` of the first step, what to join to it, and the cell of the second."""

    normal: str
    joins: tuple[str, ...]
    cell: str
    may_refuse: bool


def placing(dialect: Dialect, attribute: Attribute, column: Declared, place: int) -> Placing:
    """Return how a column is placed for the attribute at ``place``; refuses a type that cannot fit."""
    source, normal = f"r{place}", f"n{place}"
    if isinstance(attribute, Nominal):
        return _nominal(dialect, attribute, column, source, place)
    if not isinstance(attribute, Ordinal):
        raise SchemaError(f"attribute '{attribute.name}' is neither ordinal nor nominal and cannot be counted")
    division = attribute.division
    if isinstance(division, Calendar):
        written = _calendar_number(dialect, attribute, division, column, source)
        inside = f"{normal} - {_whole(division.first_number)}"
        cell = _whole_cell(attribute, normal, inside, division.first_number)
    elif isinstance(division, WholeNumbers):
        written, is_float = _number(dialect, attribute, column, source)
        cell = (
            _float_cell(dialect, attribute, normal, division.low)
            if is_float
            else _whole_cell(attribute, normal, f"{normal} - {_whole(division.low)}", division.low)
        )
    elif isinstance(division, Bins):
        written, is_float = _number(dialect, attribute, column, source)
        written = written if is_float else dialect.as_double(written, WHOLE)
        cell = _bin_cell(dialect, attribute, normal, division.edges)
    return Placing(written, (), cell, _may_refuse(attribute))


def person_text(dialect: Dialect, column: Declared, source: str) -> str:
    """Write a person's identity as text, NULL if it is missing or blank, as ``normalising.person_text`` does."""
    if column.kind == WHOLE:
        return dialect.as_text(source)
    if column.kind in (TEXT, DECIMAL):
        text = dialect.trimmed(dialect.as_text(source))
        return f"nullif({_plain_number(dialect, text)}, {dialect.literal('')})"
    raise TableError(
        f"the column '{column.name}' that names the person has the type {column.type_name}; use a column of whole "
        "numbers or text, or a SELECT that converts it"
    )


def _may_refuse(attribute: Attribute) -> bool:
    return attribute.missing == "reject" or attribute.outside != "other"


def _missing(attribute: Attribute) -> int:
    return -MISSING if attribute.missing_cell is None else attribute.missing_cell


def _other(attribute: Attribute) -> int:
    return -OUTSIDE if attribute.other_cell is None else attribute.other_cell


def _whole(number: int) -> str:
    return f"({number})" if number < 0 else str(number)


def _whole_cell(attribute: Attribute, number: str, inside: str, low: int) -> str:
    high = low + attribute.regular_size - 1
    outside = f"ELSE {_other(attribute)}"
    if attribute.outside == "clip":
        outside = (
            f"WHEN {number} = {_whole(_UNREADABLE_NUMBER)} THEN {-UNREADABLE} "
            f"WHEN {number} < {_whole(low)} THEN 0 ELSE {high - low}"
        )
    return (
        f"CASE WHEN {number} IS NULL THEN {_missing(attribute)} "
        f"WHEN {number} BETWEEN {_whole(low)} AND {_whole(high)} THEN {inside} {outside} END"
    )


def _float_cell(dialect: Dialect, attribute: Attribute, number: str, low: int) -> str:
    """Place whole numbers that are floats; a fraction is outside, and is rounded down under clip."""
    ends = [dialect.number(float(end)) for end in (low, low + attribute.regular_size - 1)]
    within = f"{number} BETWEEN {ends[0]} AND {ends[1]}"
    inside = f"{dialect.as_whole(f'floor({number})')} - {_whole(low)}"
    head = f"CASE WHEN {number} IS NULL THEN {_missing(attribute)} "
    if attribute.outside == "clip":
        rest = f"WHEN {within} THEN {inside} WHEN {number} < {ends[0]} THEN 0 ELSE {attribute.regular_size - 1} END"
    else:
        rest = f"WHEN {within} AND floor({number}) = {number} THEN {inside} ELSE {_other(attribute)} END"
    return head + rest


def _bin_cell(dialect: Dialect, attribute: Attribute, number: str, edges: Sequence[float]) -> str:
    if len(edges) - 1 > dialect.most_bins:
        raise TableError(
            f"'{attribute.name}' has {len(edges) - 1:,} bins, and at most {dialect.most_bins:,} can be told apart in "
            "this database; use coarser bins, or export the table to Parquet"
        )
    floats = [float(edge) for edge in edges]
    outside = f"ELSE {_other(attribute)}"
    if attribute.outside == "clip":
        outside = f"WHEN {number} < {dialect.number(floats[0])} THEN 0 ELSE {attribute.regular_size - 1}"
    return (
        f"CASE WHEN {number} IS NULL THEN {_missing(attribute)} "
        f"WHEN {number} BETWEEN {dialect.number(floats[0])} AND {dialect.number(floats[-1])} "
        f"THEN {dialect.bin_of(number, floats)} {outside} END"
    )


def _number(dialect: Dialect, attribute: Ordinal, column: Declared, source: str) -> tuple[str, bool]:
    """Write a column's numbers, NULL for NaN, and tell whether they are floats."""
    if column.kind == WHOLE:
        return dialect.as_whole(source), False
    if column.kind == BOOLEAN:
        return f"CASE WHEN {source} IS NULL THEN NULL WHEN {source} THEN 1 ELSE 0 END", False
    if column.kind in (DECIMAL, FLOAT):
        return _float(dialect, column, source), True
    raise _wrong_type(attribute, column, "numbers")


def _float(dialect: Dialect, column: Declared, source: str) -> str:
    number = dialect.as_double(source, column.kind or "")
    return f"CASE WHEN {source} IS NULL OR {dialect.is_nan(number)} THEN NULL ELSE {number} END"


def _calendar_number(dialect: Dialect, attribute: Ordinal, calendar: Calendar, column: Declared, source: str) -> str:
    if column.kind in (DAY, MOMENT, INSTANT):
        return dialect.calendar_number(dialect.day_of(source, column.kind), calendar.unit)
    if calendar.unit == "year" and column.kind == WHOLE:
        return dialect.as_whole(source)
    if calendar.unit == "year" and column.kind in (DECIMAL, FLOAT):
        number = _float(dialect, column, source)
        return (
            f"CASE WHEN ({number}) IS NULL THEN NULL WHEN ({number}) > {FAR_FUTURE} THEN {FAR_FUTURE} "
            f"WHEN ({number}) < {FAR_PAST} THEN {FAR_PAST} WHEN ({number}) = floor({number}) "
            f"THEN {dialect.as_whole(f'({number})')} ELSE {_UNREADABLE_NUMBER} END"
        )
    raise _wrong_type(attribute, column, "dates or timestamps")


def _nominal(dialect: Dialect, attribute: Nominal, column: Declared, source: str, place: int) -> Placing:
    values = plain_values(attribute)
    normal, codes = f"n{place}", f"k{place}"
    missing, other = _missing(attribute), _other(attribute)
    if column.kind == BOOLEAN:
        words = [_code_of_word(attribute, values, word, column) for word in ("true", "false")]
        yes, no = (other if code is None else code for code in words)
        cell = f"CASE WHEN {normal} IS NULL THEN {missing} WHEN {normal} THEN {yes} ELSE {no} END"
        return Placing(source, (), cell, _may_refuse(attribute))
    if column.kind == TEXT:
        return _nominal_text(dialect, attribute, values, source, place)
    written, entries = _entries(dialect, attribute, values, column, source)
    joins, found = _joined(dialect, codes, normal, entries)
    cell = f"CASE WHEN {normal} IS NULL THEN {missing} ELSE coalesce({found}, {other}) END"
    return Placing(written, joins, cell, _may_refuse(attribute))


def _entries(
    dialect: Dialect, attribute: Nominal, values: tuple[str, ...], column: Declared, source: str
) -> tuple[str, Mapping[str, int]]:
    """Return what is looked up of a column that is no text, and the code of each entry, both as SQL."""
    numbers = codes_of_numbers(values)
    if column.kind == WHOLE:
        return dialect.as_text(source), {dialect.literal(number): code for number, code in numbers.items()}
    if column.kind == DECIMAL:
        plain = _plain_number(dialect, dialect.as_text(source))
        return plain, {dialect.literal(number): code for number, code in numbers.items()}
    if column.kind == DAY:
        days = {value: code for code, value in enumerate(values) if _ISO_DAY.fullmatch(value)}
        return dialect.iso_day(source), {dialect.literal(day): code for day, code in days.items()}
    if column.kind == FLOAT:
        if any(map(is_beyond_floats, numbers)) or any(map(_FLOAT_IN_WORDS.fullmatch, values)):
            raise _wrong_type(attribute, column, "whole numbers or text, for floats have lost digits of such codes")
        exact = {float(number): code for number, code in numbers.items() if _is_written_so(number)}
        return _float(dialect, column, source), {dialect.number(number): code for number, code in exact.items()}
    raise _wrong_type(attribute, column, "text, numbers or dates")


def _is_written_so(number: str) -> bool:
    """Tell whether there is a float that is written as this plain number, and not in powers of ten."""
    value = float(number)
    if "." not in number:
        return True
    return 1e-4 <= abs(value) < 1e15 and plain_spelling(repr(value)) == number


def _nominal_text(dialect: Dialect, attribute: Nominal, values: tuple[str, ...], source: str, place: int) -> Placing:
    """Place text: the value itself, else a number in plain digits, else true or false, else a day without midnight."""
    normal, missing, other = f"n{place}", _missing(attribute), _other(attribute)
    listed = {dialect.literal(value): code for code, value in enumerate(values)}
    joins, found = _joined(dialect, f"k{place}", normal, listed)
    attempts = [found]
    numbers = codes_of_numbers(values)
    if numbers:
        entries = {dialect.literal(number): code for number, code in numbers.items()}
        more, found = _joined(dialect, f"p{place}", _plain_number(dialect, normal), entries)
        joins, attempts = joins + more, [*attempts, found]
    lowered = [value.lower() for value in values]
    for word in ("true", "false"):
        if lowered.count(word) == 1:
            code = lowered.index(word)
            attempts.append(f"CASE WHEN lower({normal}) = {dialect.literal(word)} THEN {code} END")
    if any(_ISO_DAY.fullmatch(value) for value in values):
        without = dialect.replaced(normal, _MIDNIGHT, "")
        more, found = _joined(dialect, f"m{place}", without, listed)
        joins, attempts = joins + more, [*attempts, found]
    blank = f"{normal} IS NULL OR {normal} = {dialect.literal('')}"
    cell = f"CASE WHEN {blank} THEN {missing} ELSE coalesce({', '.join(attempts)}, {other}) END"
    return Placing(dialect.trimmed(dialect.as_text(source)), joins, cell, _may_refuse(attribute))


def _joined(dialect: Dialect, name: str, looked_up: str, entries: Mapping[str, int]) -> tuple[tuple[str, ...], str]:
    """Return the join that looks up entries, none if there are none, and the code that it finds."""
    if not entries:
        return (), "NULL"
    return (f"LEFT JOIN {dialect.listing(entries, name)} ON {name}.entry = {looked_up}",), f"{name}.code"


def _code_of_word(attribute: Nominal, values: tuple[str, ...], word: str, column: Declared) -> int | None:
    lowered = [value.lower() for value in values]
    if lowered.count(word) > 1:
        raise _wrong_type(attribute, column, "text, for several of its values differ from true or false in case only")
    return lowered.index(word) if word in lowered else None


def _plain_number(dialect: Dialect, text: str) -> str:
    """Write a text that is a number in plain digits without a plus and outer zeros; most texts need no look at all."""
    whole = dialect.replaced(text, _WHOLE_PATTERN, _WHOLE_PLAIN)
    plain = dialect.replaced(whole, _FRACTION_PATTERN, _FRACTION_PLAIN)
    firsts = ", ".join(map(dialect.literal, "+-0."))
    is_plain = f"NOT {dialect.holds(text, '.')} AND substr({text}, 1, 1) NOT IN ({firsts})"
    zero, minus = dialect.literal("0"), dialect.literal("-0")
    return f"CASE WHEN {is_plain} THEN {text} WHEN {plain} = {minus} THEN {zero} ELSE {plain} END"


def _wrong_type(attribute: Attribute, column: Declared, allowed: str) -> TableError:
    return TableError(
        f"the column '{attribute.column}' has the type {column.type_name}, but '{attribute.name}' needs {allowed} in a "
        "database; convert the column, in a view for example, or describe it differently in the schema"
    )
