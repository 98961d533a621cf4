"""SQL that brings a column of any type to one number per row, the same whatever source the table came from.

The number is a BIGINT or a DOUBLE for whole numbers, a DOUBLE for bins, a calendar number for dates, and a code for
nominal values. NULL always means missing: a null, a NaN, or text that is empty or blank. Values that are there but
cannot be read get a mark of their own, so that the attribute's policy decides about them and not the engine:
NaN for numbers, ``UNREADABLE_NUMBER`` for dates and ``UNKNOWN_CODE`` for nominal values.
"""

from datetime import date

from veilcube.curator.kernels import UNREADABLE_NUMBER
from veilcube.curator.tables import Column, Engine
from veilcube.errors import SchemaError, TableError
from veilcube.schema import Attribute, Bins, Calendar, Nominal, Ordinal

UNKNOWN_CODE = -1

INTEGERS = frozenset({"tinyint", "smallint", "integer", "bigint", "utinyint", "usmallint", "uinteger"})
WIDE_NUMBERS = frozenset({"ubigint", "hugeint", "uhugeint", "bignum", "decimal", "float", "double"})
TEXTS = frozenset({"varchar", "enum", "null", "uuid"})
ZONED = frozenset({"timestamp with time zone", "timestamptz", "timestamptz_ns"})
DATES = frozenset({"date", "timestamp", "timestamp_s", "timestamp_ms", "timestamp_us", "timestamp_ns"}) | ZONED

FLOATS = frozenset({"float", "double"})
SCALARS = INTEGERS | WIDE_NUMBERS | TEXTS | DATES | {"boolean"}

_BLANKS = " \t\n\r\v\f"
# A whole number as text: its sign and its digits without leading zeros are the groups, a fraction of zeros is not.
_WHOLE_NUMBER = "^[+]?(-?)0*([0-9]+)(?:[.]0*)?$"
_NAN = "CAST('nan' AS DOUBLE)"
# Beyond any calendar that a schema can describe (years 1 to 9999), on either side; infinite dates go there too.
_FAR_FUTURE, _FAR_PAST = 2**40, -(2**40)
_EPOCH = date(1970, 1, 1)


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

    A number has one text however it is stored or written: 7, 7.0, 007 and 7e0 are one person. To take two persons for
    one costs some of their rows; to take one for two would break the bound on what one person can change.
    """
    if column.type_name not in SCALARS:
        raise TableError(
            f"the column '{name}' that names the person has the type {column.type_name.upper()}; "
            "use a column of text or numbers"
        )
    plain = f"CAST({column.identifier} AS VARCHAR)"
    if column.type_name in INTEGERS:
        return plain
    if column.type_name in FLOATS:
        return _text_of_float(f"CAST({column.identifier} AS DOUBLE)", plain)
    text = _trimmed(plain)
    number = f"TRY_CAST({text} AS DOUBLE)"
    # Digits are kept as they are, because ids may have more of them than a float can hold.
    digits = f"regexp_replace({text}, '{_WHOLE_NUMBER}', '\\1\\2')"
    return (
        f"CASE WHEN {text} = '' THEN NULL WHEN {number} IS NULL OR NOT isfinite({number}) THEN {text} "
        f"WHEN {number} = 0 THEN '0' WHEN regexp_matches({text}, '{_WHOLE_NUMBER}') THEN {digits} "
        f"ELSE {_text_of_float(number, f'CAST({number} AS VARCHAR)')} END"
    )


def _text_of_float(number: str, otherwise: str) -> str:
    """Write a whole float with all its digits, as an integer is written; NULL if it is NaN."""
    whole = f"CAST(TRY_CAST({number} AS HUGEINT) AS VARCHAR)"
    return (
        f"CASE WHEN isnan({number}) THEN NULL "
        f"WHEN {number} = trunc({number}) THEN coalesce({whole}, {otherwise}) ELSE {otherwise} END"
    )


def _number(attribute: Ordinal, column: Column) -> str:
    source = column.identifier
    if column.type_name in INTEGERS or column.type_name == "boolean":
        return f"CAST({source} AS {'DOUBLE' if isinstance(attribute.division, Bins) else 'BIGINT'})"
    if column.type_name in WIDE_NUMBERS:
        return _without_nan(f"CAST({source} AS DOUBLE)")
    if column.type_name in TEXTS:
        text = f"CAST({source} AS VARCHAR)"
        absent = f"{text} IS NULL OR lower({_trimmed(text)}) IN ('', 'nan', '+nan', '-nan')"
        return (
            f"coalesce({_without_nan(f'TRY_CAST({text} AS DOUBLE)')}, "
            f"CASE WHEN {absent} THEN CAST(NULL AS DOUBLE) ELSE {_NAN} END)"
        )
    raise _wrong_type(attribute, column, "numbers, or text that holds numbers")


def _without_nan(number: str) -> str:
    """Make NaN NULL; not by comparison, because Parquet's statistics leave NaN out and optimisers believe them."""
    return f"CASE WHEN isnan({number}) THEN NULL ELSE {number} END"


def _calendar_number(attribute: Ordinal, calendar: Calendar, column: Column) -> str:
    source = column.identifier
    if column.type_name in ZONED:  # the day in UTC, whatever zone this machine is in
        instant = f"CAST(make_timestamp(epoch_us(CAST({source} AS TIMESTAMPTZ))) AS DATE)"
        return _number_of(calendar, f"coalesce({instant}, CAST({source} AS DATE))")
    if column.type_name in DATES:
        return _number_of(calendar, f"CAST({source} AS DATE)")
    if column.type_name in INTEGERS and calendar.unit == "year":
        return f"CAST({source} AS BIGINT)"
    if column.type_name in WIDE_NUMBERS and calendar.unit == "year":
        return _year_of_float(_without_nan(f"CAST({source} AS DOUBLE)"))
    if column.type_name in TEXTS:
        text = f"CAST({source} AS VARCHAR)"
        trimmed = _trimmed(text)
        endings = {"day": [""], "month": ["", "-01"], "year": ["", "-01", "-01-01"]}[calendar.unit]
        attempts = ", ".join(f"TRY_CAST({trimmed} || '{ending}' AS DATE)" for ending in endings)
        day = f"coalesce(TRY_CAST({text} AS DATE), CASE WHEN {text} IS NOT NULL THEN coalesce({attempts}) END)"
        mark = f"CASE WHEN {text} IS NULL OR {trimmed} = '' THEN NULL ELSE {UNREADABLE_NUMBER} END"
        return f"coalesce({_number_of(calendar, day)}, {mark})"
    raise _wrong_type(attribute, column, "dates, timestamps, or text such as 2024-03-15")


def _year_of_float(number: str) -> str:
    """Write the year that a float means: some libraries make floats of whole numbers when one of them is missing."""
    return (
        f"CASE WHEN {number} IS NULL THEN NULL WHEN {number} > {_FAR_FUTURE} THEN {_FAR_FUTURE} "
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
    values = _plain_values(attribute)
    if column.type_name == "boolean":
        return _boolean_code(values, column)
    text = _as_text(column)
    if text is None:
        raise _wrong_type(attribute, column, "text, numbers or dates")
    kind = engine.enumerate_values(values)
    found = f"CAST(enum_code(TRY_CAST({text} AS {kind})) AS INTEGER)"
    if column.type_name not in TEXTS:
        return f"CASE WHEN {text} IS NULL THEN NULL ELSE coalesce({found}, {UNKNOWN_CODE}) END"
    # Text that matches as it stands, which is nearly all of it, is never trimmed: the engine evaluates what stands
    # inside a CASE only for the rows that reach it, but computes shared parts of a bare coalesce for every row.
    trimmed = _trimmed(text)
    without_fraction = f"regexp_replace({trimmed}, '^(-?[0-9]+)[.]0+$', '\\1')"
    attempts = [
        f"CAST(enum_code(TRY_CAST({spelling} AS {kind})) AS INTEGER)" for spelling in (trimmed, without_fraction)
    ]
    attempts += _codes_of_boolean_text(values, trimmed)
    mark = f"CASE WHEN {trimmed} = '' THEN NULL ELSE {UNKNOWN_CODE} END"
    return f"coalesce({found}, CASE WHEN {text} IS NOT NULL THEN coalesce({', '.join(attempts)}, {mark}) END)"


def _codes_of_boolean_text(values: tuple[str, ...], text: str) -> list[str]:
    """Match true and false in any case, for each program writes them in its own, if just one value can be meant."""
    lowered = [value.lower() for value in values]
    return [
        f"CASE WHEN lower({text}) = '{word}' THEN {lowered.index(word)} END"
        for word in ("true", "false")
        if lowered.count(word) == 1
    ]


def _plain_values(attribute: Nominal) -> tuple[str, ...]:
    values = tuple(value.strip(_BLANKS) for value in attribute.values)
    if "" in values:
        raise SchemaError(
            f"attribute '{attribute.name}' lists an empty value, but empty text is missing; "
            "remove it and set missing='cell'"
        )
    if len(set(values)) < len(values):
        raise SchemaError(f"attribute '{attribute.name}' lists two values that differ in blanks only; remove one")
    return values


def _boolean_code(values: tuple[str, ...], column: Column) -> str:
    lowered = [value.lower() for value in values]
    yes, no = (lowered.index(text) if text in lowered else UNKNOWN_CODE for text in ("true", "false"))
    return f"CASE WHEN {column.identifier} IS NULL THEN NULL WHEN {column.identifier} THEN {yes} ELSE {no} END"


def _as_text(column: Column) -> str | None:
    """Write a column's values as a person would: a float that is whole without its fraction; None for other types."""
    plain = f"CAST({column.identifier} AS VARCHAR)"
    fractional_decimal = column.type_name == "decimal" and not column.declared.endswith(",0)")
    if column.type_name in FLOATS or fractional_decimal:
        number = f"CAST({column.identifier} AS DOUBLE)"
        whole = f"CAST(TRY_CAST({number} AS BIGINT) AS VARCHAR)"
        return (
            f"CASE WHEN isnan({number}) THEN NULL "
            f"WHEN {number} = trunc({number}) AND abs({number}) < {2**53} THEN {whole} ELSE {plain} END"
        )
    return plain if column.type_name in SCALARS else None


def _trimmed(text: str) -> str:
    return f"trim({text}, '{_BLANKS}')"


def _wrong_type(attribute: Attribute, column: Column, allowed: str) -> TableError:
    return TableError(
        f"the column '{attribute.column}' has the type {column.type_name.upper()}, but '{attribute.name}' needs "
        f"{allowed}; convert the column, or describe it differently in the schema"
    )
