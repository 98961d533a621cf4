"""SQL that brings a column of any type to one number per row, the same whatever source the table came from.

The number is a BIGINT or a DOUBLE for whole numbers, a DOUBLE for bins, a calendar number for dates, and a code for
nominal values. NULL always means missing: a null, a NaN, or text that is empty or blank. Values that are there but
cannot be read get a mark of their own, so that the attribute's policy decides about them and not the engine:
NaN for numbers, ``UNREADABLE_NUMBER`` for dates and ``UNKNOWN_CODE`` for nominal values.

What a value means depends on the value and the schema, never on the type of its column: libraries change the type of a
whole column when one row does not fit it, and that row would move all the others. So the number 7, the text 7 and the
text 7.0 are one value, true is the number 1, an instant is a day in UTC whether its column has a zone or is text, and
what a library writes for a value of a mixed column (``tables.frames``) is what a typed column would be taken for.
"""

import re
from datetime import date

from veilcube.curator.tables import LOST_DIGITS, UNREADABLE_NUMBER, Column, Engine
from veilcube.errors import SchemaError, TableError
from veilcube.schema import Attribute, Bins, Calendar, Nominal, Ordinal

UNKNOWN_CODE = -1

INTEGERS = frozenset({"tinyint", "smallint", "integer", "bigint", "utinyint", "usmallint", "uinteger"})
HUGE_NUMBERS = frozenset({"hugeint", "uhugeint", "bignum"})
WIDE_NUMBERS = HUGE_NUMBERS | {"ubigint", "decimal", "float", "double"}
TEXTS = frozenset({"varchar", "enum", "null", "uuid"})
ZONED = frozenset({"timestamp with time zone", "timestamptz", "timestamptz_ns"})
DATES = frozenset({"date", "timestamp", "timestamp_s", "timestamp_ms", "timestamp_us", "timestamp_ns"}) | ZONED

FLOATS = frozenset({"float", "double"})
SCALARS = INTEGERS | WIDE_NUMBERS | TEXTS | DATES | {"boolean"}

_BLANKS = " \t\n\r\v\f"
# A number in plain digits; libraries write a fraction of zeros once a value of the column is missing. Where names may
# stand, nothing else is a number: 0E1 and 1_000 are names.
_PLAIN_DECIMAL = re.compile(r"[+]?(-?)0*([0-9]*)(?:[.]([0-9]*?)0*)?")
_DECIMAL_DIGITS = re.compile(r"^DECIMAL\((\d+),")
# A day may be written with its midnight where some row of its column has a time of day.
_ISO_DAY = re.compile(r"\d{4}-\d{2}-\d{2}")
_MIDNIGHT = "[ T]00:00:00([.]0+)?$"
_EXACT_FLOATS, _DIGITS_OF_EXACT_FLOATS = 2**53, 15
_NAN = "CAST('nan' AS DOUBLE)"
# Beyond any calendar that a schema can describe (years 1 to 9999), on either side; infinite dates go there too.
_FAR_FUTURE, _FAR_PAST = 2**40, -(2**40)
_EPOCH, _NANOSECONDS = date(1970, 1, 1), 86_400 * 10**9


def normalised(engine: Engine, attribute: Attribute, column: Column) -> str:
    """Return the SQL expression that normalises a column for an attribute; refuses a type that cannot fit."""
    if isinstance(attribute, Ordinal):
        if isinstance(attribute.division, Calendar):
            return f"CAST({_calendar_number(attribute, attribute.division, column)} AS BIGINT)"
        return _number(attribute, column)
    if isinstance(attribute, Nominal):
        return f"CAST({_code(engine, attribute, column)} AS BIGINT)"
    raise SchemaError(f"attribute '{attribute.name}' is neither ordinal nor nominal and cannot be counted")


def person_text(name: str, column: Column) -> str:
    """Return the SQL expression of a person's identity as text; NULL if it is missing or blank.

    A number in plain digits is one person however it is stored or written: 7, 7.0 and 007. To take one person for two
    would break the bound on what one person can change; two that are taken for one are protected as one.
    """
    if column.type_name not in SCALARS:
        raise TableError(
            f"the column '{name}' that names the person has the type {column.type_name.upper()}; "
            "use a column of text or numbers"
        )
    if column.type_name in INTEGERS:
        return f"CAST({column.identifier} AS VARCHAR)"
    return f"nullif({_plain_number(_trimmed(_as_text(column, refuses_lost_digits=True)))}, '')"


def _number(attribute: Ordinal, column: Column) -> str:
    source = column.identifier
    if column.type_name in INTEGERS or column.type_name == "boolean":
        return f"CAST({source} AS {'DOUBLE' if isinstance(attribute.division, Bins) else 'BIGINT'})"
    if column.type_name in WIDE_NUMBERS:
        return _without_nan(_float(column))
    if column.type_name in TEXTS:
        text = f"CAST({source} AS VARCHAR)"
        word = f"lower({_trimmed(text)})"
        return (
            f"coalesce({_without_nan(f'TRY_CAST({text} AS DOUBLE)')}, "
            f"CASE WHEN {text} IS NULL OR {word} IN ('', 'nan', '+nan', '-nan') THEN CAST(NULL AS DOUBLE) "
            f"WHEN {word} = 'true' THEN 1.0 WHEN {word} = 'false' THEN 0.0 ELSE {_NAN} END)"
        )
    raise _wrong_type(attribute, column, "numbers, or text that holds numbers")


def _float(column: Column) -> str:
    """Write the float next to a number: by way of its digits, as for text, where the engine would round twice."""
    digits = _DECIMAL_DIGITS.search(column.declared)
    is_wide = column.type_name in HUGE_NUMBERS or (digits is not None and int(digits[1]) > _DIGITS_OF_EXACT_FLOATS)
    return f"CAST({f'CAST({column.identifier} AS VARCHAR)' if is_wide else column.identifier} AS DOUBLE)"


def _without_nan(number: str) -> str:
    """Make NaN NULL; not by comparison, because Parquet's statistics leave NaN out and optimisers believe them."""
    return f"CASE WHEN isnan({number}) THEN NULL ELSE {number} END"


def _calendar_number(attribute: Ordinal, calendar: Calendar, column: Column) -> str:
    source = column.identifier
    if column.type_name in DATES:
        return _number_of(calendar, _day(column))
    if column.type_name in INTEGERS and calendar.unit == "year":
        return f"CAST({source} AS BIGINT)"
    if column.type_name in WIDE_NUMBERS and calendar.unit == "year":
        return _year_of_float(_float(column))
    if column.type_name in TEXTS:
        return _calendar_number_of_text(calendar, f"CAST({source} AS VARCHAR)")
    raise _wrong_type(attribute, column, "dates, timestamps, or text such as 2024-03-15")


def _day(column: Column) -> str:
    """Write the day of a date or an instant, in UTC, to which the engine's clock is set.

    The engine rounds nanoseconds, which would make the last of a day the next day, so their days are counted.
    """
    source = column.identifier
    if not column.type_name.endswith("_ns"):
        return f"CAST({source} AS DATE)"
    of_day = f"((epoch_ns({source}) % {_NANOSECONDS}) + {_NANOSECONDS}) % {_NANOSECONDS}"
    days = f"CAST((epoch_ns({source}) - {of_day}) // {_NANOSECONDS} AS INTEGER)"
    return f"CASE WHEN isfinite(CAST({source} AS DATE)) THEN DATE '{_EPOCH}' + {days} ELSE CAST({source} AS DATE) END"


def _calendar_number_of_text(calendar: Calendar, text: str) -> str:
    trimmed = _trimmed(text)
    # Ten letters hold no time of day. Longer texts are read as instants, the engine's clock being UTC, for they may
    # name a zone; and a text with a time of day that is no instant is no date either.
    instant = f"CAST(TRY_CAST(regexp_replace({trimmed}, '\\s+([-+]\\d)', '\\1') AS TIMESTAMPTZ) AS DATE)"
    plain = f"CASE WHEN NOT contains({trimmed}, ':') THEN TRY_CAST({trimmed} AS DATE) END"
    endings = {"day": [], "month": ["-01"], "year": ["-01"]}[calendar.unit]
    partial = ", ".join(["NULL", *(f"TRY_CAST({trimmed} || '{ending}' AS DATE)" for ending in endings)])
    day = (
        f"CASE WHEN strlen({text}) <= 10 THEN coalesce(TRY_CAST({text} AS DATE), {partial}) "
        f"ELSE coalesce({instant}, {plain}, {partial}) END"
    )
    year = f"TRY_CAST({trimmed} AS DOUBLE)"
    number = _number_of(calendar, f"({day})")
    if calendar.unit == "year":
        number = f"CASE WHEN {year} IS NOT NULL THEN {_year_of_float(year)} ELSE {number} END"
    absent = f"{trimmed} = ''" + (f" OR isnan({year})" if calendar.unit == "year" else "")
    return f"coalesce({number}, CASE WHEN {text} IS NULL OR {absent} THEN NULL ELSE {UNREADABLE_NUMBER} END)"


def _year_of_float(number: str) -> str:
    """Write the year that a float means: some libraries make floats of whole numbers when one of them is missing."""
    return (
        f"CASE WHEN {number} IS NULL OR isnan({number}) THEN NULL WHEN {number} > {_FAR_FUTURE} THEN {_FAR_FUTURE} "
        f"WHEN {number} < {_FAR_PAST} THEN {_FAR_PAST} WHEN {number} = trunc({number}) THEN CAST({number} AS BIGINT) "
        f"ELSE {UNREADABLE_NUMBER} END"
    )


def _number_of(calendar: Calendar, day: str) -> str:
    """Write ``Calendar.number_of`` in SQL; NULL stays NULL, and infinite dates, which have no year, lie far away."""
    number = {
        "day": f"{day} - DATE '{_EPOCH}' + {_EPOCH.toordinal()}",
        "month": f"year({day}) * 12 + month({day}) - 1",
        "year": f"year({day})",
    }[calendar.unit]
    infinite = f"CASE WHEN {day} > DATE '{_EPOCH}' THEN {_FAR_FUTURE} WHEN {day} < DATE '{_EPOCH}' THEN {_FAR_PAST} END"
    return f"coalesce({number}, {infinite})"


def _code(engine: Engine, attribute: Nominal, column: Column) -> str:
    values = plain_values(attribute)
    if column.type_name == "boolean":
        if len({value.lower() for value in values} & {"true", "false"}) < sum(
            value.lower() in ("true", "false") for value in values
        ):
            raise _wrong_type(
                attribute, column, "text, for several of its values differ from true or false in case only"
            )
        yes, no = (_code_of_word(values, word) for word in ("true", "false"))
        return f"CASE WHEN {column.identifier} IS NULL THEN NULL WHEN {column.identifier} THEN {yes} ELSE {no} END"
    if column.type_name not in SCALARS:
        raise _wrong_type(attribute, column, "text, numbers or dates")
    numbers = codes_of_numbers(values)
    text = _as_text(column, refuses_lost_digits=any(is_beyond_floats(number) for number in numbers))
    found = _listed_code(engine, values, text)
    # Text that matches as it stands, which is nearly all of it, is never trimmed: the engine evaluates what stands
    # inside a CASE only for the rows that reach it, but computes shared parts of a bare coalesce for every row.
    trimmed = _trimmed(text)
    attempts = [_listed_code(engine, values, trimmed)]
    if numbers:
        codes = ", ".join(map(str, numbers.values()))
        place = _listed_code(engine, tuple(numbers), _plain_number(trimmed))
        attempts.append(f"list_extract([{codes}], {place} + 1)")
    attempts += [
        f"CASE WHEN lower({trimmed}) = '{word}' THEN {code} END"
        for word in ("true", "false")
        if (code := _code_of_word(values, word)) != UNKNOWN_CODE
    ]
    if any(_ISO_DAY.fullmatch(value) for value in values):
        attempts.append(_listed_code(engine, values, f"regexp_replace({trimmed}, '{_MIDNIGHT}', '')"))
    mark = f"CASE WHEN {trimmed} = '' THEN NULL ELSE {UNKNOWN_CODE} END"
    return f"coalesce({found}, CASE WHEN {text} IS NOT NULL THEN coalesce({', '.join(attempts)}, {mark}) END)"


def _listed_code(engine: Engine, values: tuple[str, ...], text: str) -> str:
    return f"CAST(enum_code(TRY_CAST({text} AS {engine.enumerate_values(values)})) AS INTEGER)"


def _code_of_word(values: tuple[str, ...], word: str) -> int:
    """Find true or false, which each program writes in its own case, if just one value can be meant."""
    lowered = [value.lower() for value in values]
    return lowered.index(word) if lowered.count(word) == 1 else UNKNOWN_CODE


def codes_of_numbers(values: tuple[str, ...]) -> dict[str, int]:
    """Map each number among the values, written plainly, to its code: the value that is written so, else the only one.

    A column of codes such as 007 may arrive as whole numbers or as text, depending on whether all rows hold digits.
    """
    plain = [plain_spelling(value) for value in values]
    return {
        number: values.index(number) if number in values else plain.index(number)
        for number in dict.fromkeys(plain)
        if number is not None and (number in values or plain.count(number) == 1)
    }


def plain_spelling(value: str) -> str | None:
    """Return a number in plain digits without what writers add or leave out, a plus and outer zeros; else None."""
    found = _PLAIN_DECIMAL.fullmatch(value)
    if found is None or not value.strip("+-."):
        return None
    sign, digits, fraction = found.groups()
    number = f"{digits}.{fraction}" if fraction else digits
    return sign + number if number else "0"


def _plain_number(text: str) -> str:
    """Write ``plain_spelling`` in SQL."""
    whole = f"regexp_replace({text}, '^[+]?(-?)0*([0-9]+)(?:[.]0*)?$', '\\1\\2')"
    plain = f"regexp_replace({whole}, '^[+]?(-?)0*([0-9]*[.][0-9]*[1-9])0*$', '\\1\\2')"
    return f"CASE WHEN {plain} = '-0' THEN '0' ELSE {plain} END"


def is_beyond_floats(number: str) -> bool:
    """Tell whether a whole number may have become another one in a column of floats."""
    return "." not in number and abs(int(number)) >= _EXACT_FLOATS


def plain_values(attribute: Nominal) -> tuple[str, ...]:
    """Return the values that an attribute lists, without blanks around them."""
    values = tuple(value.strip(_BLANKS) for value in attribute.values)
    if "" in values:
        raise SchemaError(
            f"attribute '{attribute.name}' lists an empty value, but empty text is missing; "
            "remove it and set missing='cell'"
        )
    if len(set(values)) < len(values):
        raise SchemaError(f"attribute '{attribute.name}' lists two values that differ in blanks only; remove one")
    return values


def _as_text(column: Column, *, refuses_lost_digits: bool) -> str:
    """Write a column's values as a person would: numbers without a fraction of zeros, a day without its midnight.

    A float above 2^53 may have been another whole number, such as an id or a code, before it became a float.
    """
    plain = f"CAST({column.identifier} AS VARCHAR)"
    if column.type_name in FLOATS:
        number = f"CAST({column.identifier} AS DOUBLE)"
        lost = f"WHEN abs({number}) >= {_EXACT_FLOATS} AND isfinite({number}) THEN error('{LOST_DIGITS}') "
        return (
            f"CASE WHEN isnan({number}) THEN NULL {lost if refuses_lost_digits else ''}"
            f"WHEN {number} = trunc({number}) AND abs({number}) < {_EXACT_FLOATS} "
            f"THEN CAST(TRY_CAST({number} AS BIGINT) AS VARCHAR) ELSE CAST({number} AS VARCHAR) END"
        )
    if column.type_name == "decimal" and not column.declared.endswith(",0)"):
        # The engine writes .5 where all digits are behind the point, which depends on the other values of the column.
        return f"regexp_replace(regexp_replace({plain}, '^(-?)[.]', '\\10.'), '[.]?0+$', '')"
    if column.type_name in DATES - ZONED - {"date"}:
        day = _day(column)
        return f"CASE WHEN {column.identifier} = {day} THEN CAST({day} AS VARCHAR) ELSE {plain} END"
    return plain


def _trimmed(text: str) -> str:
    return f"trim({text}, '{_BLANKS}')"


def _wrong_type(attribute: Attribute, column: Column, allowed: str) -> TableError:
    return TableError(
        f"the column '{attribute.column}' has the type {column.type_name.upper()}, but '{attribute.name}' needs "
        f"{allowed}; convert the column, or describe it differently in the schema"
    )
