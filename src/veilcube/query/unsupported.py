"""Refusals: what a piece of SQL is called, so that an unsupported one can be named to the person who wrote it."""

import re
from collections.abc import Mapping

from sqlglot import exp

from veilcube.errors import QueryError

_WHOLE = "write SELECT COUNT(*) FROM ... WHERE ... GROUP BY ..."
_IN_HINT = "use IN (...) with the values you mean"
_ARITHMETIC = "work the value out and write it as a number"

_NAMES: Mapping[str, tuple[str, str]] = {
    "Like": ("LIKE", _IN_HINT),
    "ILike": ("ILIKE", _IN_HINT),
    "SimilarTo": ("SIMILAR TO", _IN_HINT),
    "Glob": ("GLOB", _IN_HINT),
    "RegexpLike": ("regular expressions", _IN_HINT),
    "Any": ("ANY", _IN_HINT),
    "All": ("ALL", _IN_HINT),
    "NullSafeEQ": ("IS NOT DISTINCT FROM", "use = and IS NULL"),
    "NullSafeNEQ": ("IS DISTINCT FROM", "use <> and IS NULL"),
    "Add": ("arithmetic (+)", _ARITHMETIC),
    "Sub": ("arithmetic (-)", _ARITHMETIC),
    "Mul": ("arithmetic (*)", _ARITHMETIC),
    "Div": ("arithmetic (/)", _ARITHMETIC),
    "IntDiv": ("arithmetic (//)", _ARITHMETIC),
    "Mod": ("arithmetic (%)", _ARITHMETIC),
    "Pow": ("arithmetic (power)", _ARITHMETIC),
    "Neg": ("arithmetic (-)", _ARITHMETIC),
    "Interval": ("INTERVAL", "write the date itself"),
    "Case": ("CASE", "use AND, OR and NOT"),
    "If": ("IF", "use AND, OR and NOT"),
    "Xor": ("XOR", "use AND, OR and NOT"),
    "Select": ("a subquery", "ask each question by itself"),
    "Subquery": ("a subquery", "ask each question by itself"),
    "Exists": ("EXISTS with a subquery", "ask each question by itself"),
    "Union": ("UNION", "ask each question by itself, or use OR"),
    "Intersect": ("INTERSECT", "ask each question by itself, or use AND"),
    "Except": ("EXCEPT", "ask each question by itself, or use AND NOT"),
    "Window": ("window functions (OVER)", "use GROUP BY"),
    "Filter": ("FILTER", "put the condition into WHERE"),
    "Placeholder": ("parameters", "write the value itself"),
    "Parameter": ("parameters", "write the value itself"),
    "Tuple": ("a row of several values", "compare each attribute by itself"),
    "Literal": ("a value where a condition belongs", "compare an attribute with it"),
    "Column": ("an attribute where a condition belongs", "compare it with a value"),
    "Dot": ("a name in several parts", "write the attribute's name alone"),
    "Values": ("VALUES", "name a table after FROM"),
    "Lateral": ("LATERAL", "name a table after FROM"),
    "Star": ("*", "write SELECT COUNT(*)"),
    "Rollup": ("ROLLUP", "list the attributes after GROUP BY"),
    "Cube": ("CUBE", "list the attributes after GROUP BY"),
    "GroupingSets": ("GROUPING SETS", "list the attributes after GROUP BY"),
    "Command": ("this kind of statement", "ask with SELECT COUNT(*)"),
}

_PARTS: Mapping[str, tuple[str, str]] = {
    "with_": ("WITH", _WHOLE),
    "joins": ("JOIN", "a release is one table"),
    "laterals": ("LATERAL", "a release is one table"),
    "order": ("ORDER BY", "sort the answers afterwards"),
    "limit": ("LIMIT", "every group is answered"),
    "offset": ("OFFSET", "every group is answered"),
    "having": ("HAVING", "choose among the answers afterwards"),
    "sample": ("SAMPLE", _WHOLE),
    "locks": ("FOR UPDATE", _WHOLE),
    "windows": ("WINDOW", "use GROUP BY"),
    "pivots": ("PIVOT", "use GROUP BY"),
    "query": ("IN with a subquery", _IN_HINT),
    "unnest": ("IN with UNNEST", _IN_HINT),
    "field": ("IN without a list in parentheses", _IN_HINT),
    "symmetric": ("BETWEEN SYMMETRIC", "write BETWEEN with the lower value first"),
    "columns": ("renamed columns after FROM", "use the names of the schema"),
    "all": ("GROUP BY ALL", "list the attributes after GROUP BY"),
}


def refuse(node: exp.Expr) -> QueryError:
    """Return the error that names the part of the SQL ``node`` stands for and says what to write instead."""
    kind = type(node).__name__
    if kind in _NAMES:
        name, advice = _NAMES[kind]
        return QueryError(f"not supported: {name}; {advice}")
    if isinstance(node, exp.Cast):
        return QueryError("not supported: CAST; write numbers plainly, text in quotes and dates as DATE '2024-03-15'")
    if isinstance(node, exp.Predicate | exp.Connector | exp.Not):
        return QueryError("not supported: a comparison inside a comparison; join the two with AND")
    if isinstance(node, exp.AggFunc):
        return QueryError(
            f"not supported: {_function_name(node)} here; a release is asked for COUNT(*), SUM, AVG, MEDIAN, "
            "QUANTILE_CONT, VAR_POP and SHARE, each as a column of its own behind SELECT"
        )
    if isinstance(node, exp.Func):
        return QueryError(f"not supported: the function {_function_name(node)}; compare attributes with plain values")
    words = re.sub(r"(?<=[a-z])(?=[A-Z])", " ", kind).upper()
    return QueryError(f"not supported: {words}; use AND, OR, NOT, IN, BETWEEN, IS NULL and comparisons")


def refuse_extras(node: exp.Expr, *allowed: str) -> None:
    """Refuse the first part of ``node`` that is not ``allowed``: what is not read must not be passed over."""
    for part, content in node.args.items():
        if part not in allowed and content not in (None, False, []):
            name, advice = _PARTS.get(part, (part.strip("_").replace("_", " ").upper(), _WHOLE))
            raise QueryError(f"not supported: {name}; {advice}")


def _function_name(node: exp.Func) -> str:
    name = node.name if isinstance(node, exp.Anonymous) else node.sql_name()
    return f"{name.upper()}()"
