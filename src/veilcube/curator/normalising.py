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

_BLANKS = " \t\n\r\v\f"
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
    """Return the SQL expression of a person's identity as text; NULL if it is missing or blank."""
    text = _as_text(column)
    if text is None:
        raise TableError(
            f"the column '{name}' that names the person has the type {column.declared}; use a column of text or numbers"
        )
    return f"nullif({_trimmed(text)}, '')"


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
    found_trimmed = f"CAST(enum_code(TRY_CAST({trimmed} AS {kind})) AS INTEGER)"
    mark = f"CASE WHEN {trimmed} = '' THEN NULL ELSE {UNKNOWN_CODE} END"
    return f"coalesce({found}, CASE WHEN {text} IS NOT NULL THEN coalesce({found_trimmed}, {mark}) END)"


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
    if column.type_name in ("float", "double") or fractional_decimal:
        number = f"CAST({column.identifier} AS DOUBLE)"
        whole = f"CAST(TRY_CAST({number} AS BIGINT) AS VARCHAR)"
        return (
            f"CASE WHEN isnan({number}) THEN NULL "
            f"WHEN {number} = trunc({number}) AND abs({number}) < {2**53} THEN {whole} ELSE {plain} END"
        )
    scalar = INTEGERS | WIDE_NUMBERS | TEXTS | DATES | {"boolean"}
    return plain if column.type_name in scalar else None


def _trimmed(text: str) -> str:
    return f"trim({text}, '{_BLANKS}')"


def _wrong_type(attribute: Attribute, column: Column, allowed: str) -> TableError:
    return TableError(
        f"the column '{attribute.column}' has the type {column.declared}, but '{attribute.name}' needs {allowed}; "
        "convert the column, or describe it differently in the schema"
    )
