"""What SQL asks of each group: COUNT(*), SUM, AVG, MEDIAN, quantiles, VAR_POP, and SHARE of a condition.

``SHARE(condition)`` is the share of the rows of a group that meet a condition, ``SHARE(*)`` the share of all rows that
are in the group. SQL has no word for either.
"""

from dataclasses import dataclass

from sqlglot import exp

from veilcube.errors import QueryError
from veilcube.query.conditions import region_where
from veilcube.query.unsupported import refuse, refuse_extras
from veilcube.schema import Region, Schema

DIALECT = "duckdb"
_OF_A_COLUMN: dict[type[exp.Expr], str] = {
    exp.Avg: "mean",
    exp.Sum: "sum",
    exp.Median: "median",
    exp.VariancePop: "variance",
}
_QUANTILES = (exp.PercentileCont, exp.PercentileDisc, exp.Quantile)


@dataclass(frozen=True)
class Asked:
    """One statistic: as it was written, what it is, and of what; ``name`` is its alias if it has one."""

    text: str
    name: str
    statistic: str
    column: str | None = None
    rank: float | None = None
    condition: Region | None = None


def read_aggregate(schema: Schema, column: exp.Expr, alias: str | None) -> Asked | None:
    """Return the statistic that one column of a SELECT asks for; None if it is none."""
    text = column.sql(dialect=DIALECT)
    name = alias or text
    if isinstance(column, exp.Count):
        _check_count(column)
        return Asked("COUNT(*)", alias or "COUNT(*)", "count")
    if type(column) in _OF_A_COLUMN:
        refuse_extras(column, "this")
        return Asked(text, name, _OF_A_COLUMN[type(column)], _attribute(schema, column.this))
    if isinstance(column, exp.Anonymous) and column.name.upper() == "SHARE":
        return Asked(text, name, "share", condition=_condition(schema, column))
    found = _read_quantile(column)
    if found is None:
        return None
    of, rank = found
    return Asked(text, name, "quantile", _attribute(schema, of), _rank(rank))


def _read_quantile(column: exp.Expr) -> tuple[exp.Expr, exp.Expr | None] | None:
    """Return what a quantile is taken of and its rank: QUANTILE_CONT(x, p) or PERCENTILE_CONT(p) WITHIN GROUP (...)."""
    if isinstance(column, exp.WithinGroup) and isinstance(column.this, _QUANTILES):
        refuse_extras(column, "this", "expression")
        refuse_extras(column.this, "this")
        ordered = column.expression.expressions
        if len(ordered) != 1 or ordered[0].args.get("desc"):
            raise QueryError("a quantile is taken in the order of one attribute, from its least value on")
        return ordered[0].this, column.this.this
    if isinstance(column, _QUANTILES):
        refuse_extras(column, "this", "expression", "quantile")
        return column.this, column.args.get("expression") or column.args.get("quantile")
    return None


def _rank(rank: exp.Expr | None) -> float:
    try:
        found = float(rank.name) if isinstance(rank, exp.Literal) and not rank.is_string else -1.0
    except ValueError:
        found = -1.0
    if not 0 <= found <= 1:
        raise QueryError("a quantile needs one rank between 0 and 1, such as QUANTILE_CONT(age, 0.5)")
    return found


def _attribute(schema: Schema, column: exp.Expr) -> str:
    if not isinstance(column, exp.Column) or isinstance(column.this, exp.Star):
        inner = column.this if isinstance(column, exp.Column) else column
        if isinstance(inner, exp.Distinct):
            raise QueryError("not supported: DISTINCT inside a statistic; group by the attribute instead")
        raise refuse(inner)
    return schema.names[schema.axis(column.name)]


def _condition(schema: Schema, column: exp.Anonymous) -> Region | None:
    if len(column.expressions) != 1:
        raise QueryError("SHARE takes one condition, such as SHARE(age >= 65), or * for the share of all rows")
    (given,) = column.expressions
    return None if isinstance(given, exp.Star) else region_where(schema, given)


def _check_count(count: exp.Count) -> None:
    refuse_extras(count, "this", "big_int")
    counted = count.this
    if isinstance(counted, exp.Distinct):
        raise QueryError("not supported: COUNT(DISTINCT ...); only COUNT(*) is answered from a release")
    if not isinstance(counted, exp.Star) and not (isinstance(counted, exp.Literal) and not counted.is_string):
        raise QueryError("not supported: COUNT of an expression; write COUNT(*) and 'WHERE ... IS NOT NULL'")
