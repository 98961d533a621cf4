"""Conditions: the tree of a WHERE clause turned into a region of cells, by the three-valued logic of SQL.

A comparison speaks of one attribute and is true on some cells, false on others and unknown on the rest: nothing is
known about a missing value, nor about the order of a value outside the schema. NOT is pushed down to the comparisons,
where it exchanges true and false and leaves unknown alone; a condition selects the cells where it is true.
"""

import operator
import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray
from sqlglot import exp

from veilcube.errors import QueryError
from veilcube.query.unsupported import refuse, refuse_extras
from veilcube.schema import Attribute, Nominal, Ordinal, Region, Schema, read_date
from veilcube.system import did_you_mean

Mask: TypeAlias = NDArray[np.bool_]
Value: TypeAlias = int | float | str | bool | None  # None: NULL


@dataclass(frozen=True)
class Constant:
    """A value that the condition spells out."""

    value: Value


@dataclass(frozen=True)
class Atom:
    """The cells of one attribute where a comparison, or its negation, is true."""

    axis: int
    mask: Mask


_COMPARISONS: Mapping[type[exp.Expr], str] = {
    exp.EQ: "=",
    exp.NEQ: "<>",
    exp.LT: "<",
    exp.LTE: "<=",
    exp.GT: ">",
    exp.GTE: ">=",
}
_MIRRORED = {"=": "=", "<>": "<>", "<": ">", "<=": ">=", ">": "<", ">=": "<="}
_NEGATED = {"=": "<>", "<>": "=", "<": ">=", "<=": ">", ">": "<=", ">=": "<"}
_ON_CONSTANTS: Mapping[str, Callable[[Any, Any], bool]] = {
    "=": operator.eq,
    "<>": operator.ne,
    "<": operator.lt,
    "<=": operator.le,
    ">": operator.gt,
    ">=": operator.ge,
}
_NUMBER_TEXT = re.compile(r"\s*[+-]?(\d+\.?\d*|\.\d+)(e[+-]?\d+)?\s*", re.IGNORECASE)
_GROUPED_DIGITS = re.compile(r"(?<=\d)_(?=\d)")  # 1_000, as the database reads it too
MOST_DIGITS = 4000


def region_where(schema: Schema, condition: exp.Expr, *, negated: bool = False) -> Region:
    """Return the cells where ``condition`` is true, or where its negation is."""
    condition, negated = _without_not(condition, negated)
    conjunction = isinstance(condition, exp.And) != negated
    masks: dict[int, Mask] = {}
    regions: list[Region] = []
    for term, term_negated in _terms(condition, negated):
        if isinstance(term, exp.And | exp.Or):
            regions.append(region_where(schema, term, negated=term_negated))
            continue
        found = _read_atom(schema, term, term_negated)
        if isinstance(found, Region):
            regions.append(found)
        elif found.axis not in masks:
            masks[found.axis] = found.mask
        elif conjunction:
            masks[found.axis] = masks[found.axis] & found.mask
        else:
            masks[found.axis] = masks[found.axis] | found.mask
    first, *others = [Region.on_axis(schema.shape, axis, mask) for axis, mask in masks.items()] + regions
    return first.intersect(*others) if conjunction else first.union(*others)


def _without_not(node: exp.Expr, negated: bool) -> tuple[exp.Expr, bool]:
    while isinstance(node, exp.Paren | exp.Not):
        negated = negated != isinstance(node, exp.Not)
        node = node.this
    return node, negated


def _terms(condition: exp.Expr, negated: bool) -> Iterator[tuple[exp.Expr, bool]]:
    """Flatten a chain of one connective, however deep its tree: NOT (a OR b) continues a chain of AND."""
    conjunction = isinstance(condition, exp.And) != negated
    waiting = [(condition, negated)]
    while waiting:
        node, flipped = _without_not(*waiting.pop())
        if isinstance(node, exp.And | exp.Or) and (isinstance(node, exp.And) != flipped) == conjunction:
            waiting += [(node.expression, flipped), (node.this, flipped)]
        else:
            yield node, flipped


def _read_atom(schema: Schema, node: exp.Expr, negated: bool) -> Atom | Region:
    if type(node) in _COMPARISONS:
        return _read_comparison(schema, node, negated)
    if isinstance(node, exp.In):
        return _read_in(schema, node, negated)
    if isinstance(node, exp.Between):
        return _read_between(schema, node, negated)
    if isinstance(node, exp.Is):
        return _read_is(schema, node, negated)
    if isinstance(node, exp.Boolean):
        return _constant_region(schema, bool(node.this) != negated)
    if isinstance(node, exp.Null):
        return Region.nothing(schema.shape)
    raise refuse(node)


def _read_comparison(schema: Schema, node: exp.Expr, negated: bool) -> Atom | Region:
    sign = _COMPARISONS[type(node)]
    left, right = _read_operand(node.this), _read_operand(node.expression)
    if isinstance(left, Constant) and isinstance(right, Constant):
        return _compare_constants(schema, left.value, sign, right.value, negated)
    if isinstance(left, Constant):
        left, right, sign = right, left, _MIRRORED[sign]
    if not isinstance(left, exp.Column) or not isinstance(right, Constant):
        for name in (side.name for side in (left, right) if isinstance(side, exp.Column)):
            if name.lower() not in (known.lower() for known in schema.names):
                raise QueryError(
                    f"there is no attribute '{name}'; {did_you_mean(name, schema.names)}if it is a text, write it in "
                    f"single quotes: '{name}'"
                )
        raise QueryError("not supported: comparing two attributes; compare each one with a value")
    axis = schema.axis(left.name)
    return Atom(axis, _compare(schema.attributes[axis], _NEGATED[sign] if negated else sign, right.value))


def _compare_constants(schema: Schema, left: Value, sign: str, right: Value, negated: bool) -> Region:
    if left is None or right is None:
        return Region.nothing(schema.shape)
    if isinstance(left, str) != isinstance(right, str):
        raise QueryError("not supported: comparing a number with a text; name an attribute on one side")
    return _constant_region(schema, _ON_CONSTANTS[_NEGATED[sign] if negated else sign](left, right))


def _constant_region(schema: Schema, holds: bool) -> Region:
    return Region.everything(schema.shape) if holds else Region.nothing(schema.shape)


def _read_in(schema: Schema, node: exp.In, negated: bool) -> Atom:
    refuse_extras(node, "this", "expressions")
    axis = _read_axis(schema, node.this)
    attribute = schema.attributes[axis]
    values = [_read_constant(entry) for entry in node.expressions]
    if not values:
        raise QueryError(f"IN () on '{attribute.name}' lists nothing; write at least one value")
    listed = attribute.mask(0, 0)
    for value in values:
        if value is not None:
            first, end = _cells_of(attribute, value)
            listed[first:end] = True
    if not negated:
        return Atom(axis, listed)
    # Whether a value differs from an unknown one is unknown, so NOT IN (..., NULL) is never true.
    return Atom(axis, attribute.mask(0, 0) if None in values else _known(attribute) & ~listed)


def _read_between(schema: Schema, node: exp.Between, negated: bool) -> Atom:
    refuse_extras(node, "this", "low", "high")
    axis = _read_axis(schema, node.this)
    attribute = schema.attributes[axis]
    low, high = _read_constant(node.args["low"]), _read_constant(node.args["high"])
    if isinstance(attribute, Ordinal) and _is_inverted(low, high):
        # A database would answer zero; whoever writes this has swapped the ends.
        raise QueryError(f"the range on '{attribute.name}' is inverted: {low} comes after {high}; swap the two")
    if negated:
        return Atom(axis, _compare(attribute, "<", low) | _compare(attribute, ">", high))
    return Atom(axis, _compare(attribute, ">=", low) & _compare(attribute, "<=", high))


def _is_inverted(low: Value, high: Value) -> bool:
    if isinstance(low, str) and isinstance(high, str):
        return read_date(low)[0] > read_date(high)[1]
    return isinstance(low, int | float) and isinstance(high, int | float) and low > high


def _read_is(schema: Schema, node: exp.Is, negated: bool) -> Atom:
    if not isinstance(node.expression, exp.Null):
        raise QueryError("not supported: IS with anything but NULL; write 'IS NULL', 'IS NOT NULL' or '='")
    axis = _read_axis(schema, node.this)
    known = _known(schema.attributes[axis])
    return Atom(axis, known if negated else ~known)


def _known(attribute: Attribute) -> Mask:
    """Every cell but that of missing values."""
    return attribute.mask(0, attribute.size if attribute.missing_cell is None else attribute.missing_cell)


def _compare(attribute: Attribute, sign: str, value: Value) -> Mask:
    """Return the cells where ``attribute sign value`` is true."""
    if value is None:
        return attribute.mask(0, 0)
    if sign in ("=", "<>"):
        equal = attribute.mask(*_cells_of(attribute, value))
        return equal if sign == "=" else _known(attribute) & ~equal
    if not isinstance(attribute, Ordinal):
        raise QueryError(f"not supported: {sign} on '{attribute.name}', whose values have no order; use IN (...)")
    bound = _checked_bound(attribute, value)
    if sign == "<":
        return attribute.mask(0, attribute.before(bound))
    if sign == "<=":
        return attribute.mask(0, attribute.after(bound))
    first = attribute.before(bound) if sign == ">=" else attribute.after(bound)
    return attribute.mask(first, attribute.regular_size)


def _cells_of(attribute: Attribute, value: int | float | str | bool) -> tuple[int, int]:
    if isinstance(attribute, Ordinal):
        return attribute.cells_of(_checked_bound(attribute, value))
    if isinstance(attribute, Nominal) and isinstance(value, bool):
        # A table may spell its truth values either way, and the schema lists them as the table does.
        spellings = (str(value), str(value).lower(), str(value).upper())
        known = [spelling for spelling in spellings if attribute.hierarchy.run_of(spelling) is not None]
        return attribute.cells_of(known[0] if known else str(value))
    return attribute.cells_of(value)


def _checked_bound(attribute: Ordinal, value: int | float | str | bool) -> int | float | str:
    if isinstance(value, str) and not attribute.is_date and _NUMBER_TEXT.fullmatch(value):
        raise QueryError(f"'{attribute.name}' holds numbers; write {value.strip()} without quotes")
    return value


def _read_operand(node: exp.Expr) -> exp.Column | Constant:
    while isinstance(node, exp.Paren):
        node = node.this
    if isinstance(node, exp.Column):
        return node
    return Constant(_read_constant(node))


def _read_axis(schema: Schema, node: exp.Expr) -> int:
    while isinstance(node, exp.Paren):
        node = node.this
    if not isinstance(node, exp.Column):
        raise refuse(node)
    return schema.axis(node.name)


def _read_constant(node: exp.Expr) -> Value:
    sign = 1
    while isinstance(node, exp.Paren | exp.Neg):
        sign = -sign if isinstance(node, exp.Neg) else sign
        node = node.this
    if isinstance(node, exp.Literal) and not node.is_string:
        return sign * _read_number(node.name)
    if sign == 1 and isinstance(node, exp.Literal):
        return str(node.name)
    if isinstance(node, exp.Null):
        return None
    if sign == 1 and isinstance(node, exp.Boolean):
        return bool(node.this)
    if sign == 1 and isinstance(node, exp.Cast) and _is_date_text(node):
        return str(node.this.name)
    raise refuse(node)


def _is_date_text(node: exp.Cast) -> bool:
    """Whether it is DATE '2024-03-15', which the parser turns into a cast, or the cast itself."""
    return node.to.this == exp.DataType.Type.DATE and isinstance(node.this, exp.Literal) and node.this.is_string


def _read_number(text: str) -> int | float:
    digits = _GROUPED_DIGITS.sub("", text)
    if not _NUMBER_TEXT.fullmatch(digits):
        raise QueryError(f"'{text}' is no number; write numbers such as 30, -1.5 or 2e4")
    # A number of thousands of digits is as good as infinite: nothing in a schema lies beyond it.
    return int(digits) if digits.isdecimal() and len(digits) <= MOST_DIGITS else float(digits)
