"""Every problem that a table has with a schema, of all columns at once, where counting stops at the first.

For whoever holds the table. A problem is told in public words: which column, which rule. How many rows are concerned is
private, and kept apart.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import ParamSpec

from veilcube.curator import pushdown
from veilcube.curator.counting import Source
from veilcube.curator.placing import CellRule, normalised
from veilcube.curator.tables import MISSING, OUTSIDE, UNREADABLE, Engine, open_table
from veilcube.errors import TableError
from veilcube.privacy import PrivacyUnit, Private, leaves_no_trace
from veilcube.schema import Attribute, Schema

Parameters = ParamSpec("Parameters")


@dataclass(frozen=True, repr=False)
class TableProblem(Private):
    """What keeps a column from being counted under a schema, in words that say nothing about rows.

    ``exact_rows`` is how many rows are concerned, None where the whole column is: private.
    """

    attribute: str
    words: str
    exact_rows: int | None = field(default=None, compare=False)

    def __repr__(self) -> str:
        return f"TableProblem({self.attribute!r}, {self.words!r})"


@leaves_no_trace
def check_table(source: object, schema: Schema | str | Path, *, table: str | None = None) -> list[TableProblem]:
    """Return all that keeps a table from being counted under a schema; an empty list if nothing does.

    ``source`` and ``table`` are as in ``count``. A problem tells something about the table, as a refusal of ``count``
    does: it is for the curator, and charges nothing.

    >>> import pyarrow as pa
    >>> from veilcube.schema import Ordinal
    >>> found = check_table(pa.table({"age": [30, 99]}), Schema([Ordinal("age", 30, 90), Ordinal("pay", 0, 9)]))
    >>> [problem.attribute for problem in found]
    ['age', 'pay']
    """
    named = Source.read(source, schema, None, None, table)
    if named.is_cube:
        raise TableError("a cube was counted already, and under a schema of its own; check the table that it came from")
    attributes = list(named.schema)
    told = {one.name: _refused(_require_kind, named, one, []) for one in attributes}
    sound = [one for one in attributes if told[one.name] is None]
    if sound:  # beside a column that is there, a header is known to be one, so that what it lacks can be told
        told |= {one.name: _refused(_require_kind, named, one, sound[:1]) for one in attributes if told[one.name]}
    if not sound and len(set(told.values())) == 1 and len(told) > 1:
        raise TableError(str(next(iter(told.values()))))  # it is the table that cannot be read
    stray = _stray_rows(named, sound, told)
    problems: list[TableProblem] = []
    for one in attributes:
        words = told[one.name]
        problems += [TableProblem(one.name, words)] if words is not None else stray[one.name]
    return problems


def _refused(action: Callable[Parameters, object], *given: Parameters.args, **more: Parameters.kwargs) -> str | None:
    """Return in which words an action is refused; None if it is not."""
    try:
        action(*given, **more)
    except TableError as refusal:
        return str(refusal)
    return None


def _require_kind(named: Source, attribute: Attribute, beside: list[Attribute]) -> None:
    """Refuse a column that is not there, or of a type that does not fit; rows are not read."""
    wanted = list(dict.fromkeys(one.column for one in [attribute, *beside]))
    if named.is_remote:
        with pushdown.open_remote(named.data, named.table) as remote:
            pushdown.placing(remote.dialect, attribute, pushdown.declared_columns(remote, wanted)[0], 0)
        return
    with Engine() as engine:
        for part in open_table(engine, named.data, wanted, named.table).parts:
            normalised(engine, attribute, part.columns[attribute.column])


def _stray_rows(named: Source, sound: list[Attribute], told: dict[str, str | None]) -> dict[str, list[TableProblem]]:
    """Count the rows of each kind that a policy refuses, in one pass, as counting itself would place them.

    A pass that is refused as a whole is made again for each attribute alone; ``told`` gets what refuses one.
    """
    try:
        return _stray_of(named, sound)
    except TableError:
        found: dict[str, list[TableProblem]] = {}
        for one in sound:
            told[one.name] = _refused(lambda alone: found.update(_stray_of(named, [alone])), one)
        return found


def _stray_of(named: Source, attributes: list[Attribute]) -> dict[str, list[TableProblem]]:
    if not attributes:
        return {}
    lenient = _lenient(attributes)
    tally = Source(named.data, lenient, PrivacyUnit.row(), named.table).count_tables(
        [(k,) for k in range(len(lenient))]
    )
    found = {}
    for one, counted, counts in zip(attributes, lenient, tally.exact_tables, strict=True):
        other, missing = (
            0 if cell is None else int(counts[cell]) for cell in (counted.other_cell, counted.missing_cell)
        )
        found[one.name] = list(_problems(named, one, other, missing))
    return found


def _problems(named: Source, attribute: Attribute, outside: int, missing: int) -> Iterator[TableProblem]:
    rule = CellRule(attribute)
    if outside and attribute.outside == "reject":
        yield TableProblem(attribute.name, rule.refusal(OUTSIDE), outside)
    if outside and attribute.outside == "clip":
        # Numbers outside are moved to the ends; only what is no number is refused, and how often that is, is not told.
        alone = Source(named.data, _lenient([attribute], outside="clip"), PrivacyUnit.row(), named.table)
        if _refused(alone.count_tables, [(0,)]) is not None:
            yield TableProblem(attribute.name, rule.refusal(UNREADABLE))
    if missing and attribute.missing == "reject":
        yield TableProblem(attribute.name, rule.refusal(MISSING), missing)


def _lenient(attributes: list[Attribute], outside: str = "other") -> Schema:
    """Return a schema of the attributes with a cell for everything that their policies may refuse."""
    policies = {"outside": outside, "missing": "cell"}
    return Schema.from_dict({"attribute": [one.to_dict() | policies for one in attributes]})
