"""The one SQL statement that places, caps and counts.

With a person, at most ``max_rows`` rows of each are kept. Claim: let c(T) be the counts of the kept rows of a table T.
If T' is T without one person, then c(T) - c(T') >= 0 and its entries sum to at most ``max_rows``, so the L1 sensitivity
for adding or removing a person is ``max_rows``. Proof: the kept rows of a person are the first ``max_rows`` in an
order of this person's rows by a digest of the person, the row's cells and, among rows of one cell, a running number.
The order uses no row ids, no positions and no other person's rows. So every other person keeps the same rows in T and
T', up to a swap of rows of one cell. With ``max_groups`` only rows of a person's first groups come so far, by a digest
of the person and the group: that again looks at this person's rows alone.

The digest (SHA-256, as a pseudo-random order, not as a secret) makes the choice look random, and stable over runs,
machines, row orders and engines: persons are texts and cells are whole numbers, which all of them write alike. The
running number makes each of several rows of one cell as likely to be kept as any other row.

A row that a policy refuses comes first among its person's, so that no cap hides it: then the table is refused,
whichever rows would be kept.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from math import prod

from veilcube.curator.pushdown.cells import person_text, placing
from veilcube.curator.pushdown.dialect import Declared, Dialect
from veilcube.errors import PrivacyError
from veilcube.privacy import PrivacyUnit
from veilcube.schema import Nominal, Schema

PERSON, ROWS_IN_ALL, FLAT, ROWS = "person", "rows_of_person", "flat_cell", "found"
REASONS = 4  # codes of refusals for each attribute, of which 0 is none
# What stands where a row of the result is not about a column.
ABSENT = -(2**62)


def cell_name(axis: int) -> str:
    """Return what the column of an attribute's cells is called."""
    return f"c{axis}"


@dataclass(frozen=True)
class Cap:
    """Keep at most so many rows of a person, and of how many values of which axes."""

    max_rows: int
    max_groups: Mapping[int, int]


def grouped_axes(schema: Schema, unit: PrivacyUnit) -> dict[int, int]:
    """Return of how many values of which attributes a person's rows are kept; refuses what has no such values."""
    found = {schema.axis(name): most for name, most in unit.max_groups}
    if len(found) < len(unit.max_groups):
        raise PrivacyError("max_groups names an attribute twice; give one number for it")
    for axis in found:
        if not isinstance(schema.attributes[axis], Nominal):
            raise PrivacyError(
                f"max_groups caps values of nominal attributes, and '{schema.names[axis]}' is an ordinal one; leave it "
                "out"
            )
    return found


def missing_person(unit: PrivacyUnit) -> str:
    """Say that rows belong to nobody."""
    return (
        f"the column '{unit.column}' that names the person has missing values, but every row must belong to somebody; "
        "complete the column, or drop those rows"
    )


def capped(dialect: Dialect, rows: str, axes: int, cap: Cap, *, may_refuse: bool) -> list[str]:
    """Return the steps from a relation of cells and ``person`` to ``kept``, with how many rows a person has in all.

    That number stands on one of her rows, and 0 on the others.
    """
    cells = [cell_name(axis) for axis in range(axes)]
    listed = ", ".join(cells)
    texts = [dialect.as_text(cell) for cell in [*cells, "running"]]
    # Of rows that are refused, those of the first attribute come first: the refusal names it, as for a file.
    refused_first = "CASE WHEN refused < 0 THEN -refused ELSE 2147483647 END"
    first = [refused_first, "digest"] if may_refuse else ["digest"]
    # The cells follow the digest so that rows with equal digests, should there be any, are still in a fixed order.
    order = ", ".join([*first, *cells, "running"])
    grouped, steps = _groups_kept(dialect, rows, cap.max_groups, may_refuse)
    return [
        *steps,
        f"numbered AS (SELECT *, row_number() OVER (PARTITION BY {PERSON}, {listed} ORDER BY {cells[0]}) AS running "
        f"FROM {grouped})",
        f"digested AS (SELECT *, {dialect.digest(dialect.joined([PERSON, *texts]))} AS digest FROM numbered)",
        f"ranked AS (SELECT *, row_number() OVER (PARTITION BY {PERSON} ORDER BY {order}) AS place, "
        f"count(*) OVER (PARTITION BY {PERSON}) AS in_all FROM digested)",
        f"kept AS (SELECT {listed}, {'refused, ' if may_refuse else ''}"
        f"CASE WHEN place = 1 THEN in_all ELSE 0 END AS {ROWS_IN_ALL} FROM ranked WHERE place <= {cap.max_rows})",
    ]


def _groups_kept(dialect: Dialect, rows: str, max_groups: Mapping[int, int], may_refuse: bool) -> tuple[str, list[str]]:
    """Return the relation of rows that lie in the first groups of their person, and the steps to it."""
    if not max_groups:
        return rows, []
    ranks, within = [], []
    for axis, most in max_groups.items():
        cell = cell_name(axis)
        text = dialect.joined([dialect.literal("group"), PERSON, dialect.literal(str(axis)), dialect.as_text(cell)])
        ranks.append(f"dense_rank() OVER (PARTITION BY {PERSON} ORDER BY {dialect.digest(text)}, {cell}) AS g{axis}")
        within.append(f"g{axis} <= {most}")
    chosen = " AND ".join(within)
    kept = f"({chosen}) OR refused < 0" if may_refuse else chosen
    return "grouped", [
        f"grouping_ranks AS (SELECT *, {', '.join(ranks)} FROM {rows})",
        f"grouped AS (SELECT * FROM grouping_ranks WHERE {kept})",
    ]


@dataclass(frozen=True)
class Wanted:
    """Which counts are asked for: of the flat cells of the cube, or of the cells of some axes together."""

    sets: tuple[tuple[int, ...], ...]
    is_flat: bool

    def columns(self, *, with_persons: bool) -> list[str]:
        """Return the columns of the result, the last of which says how many rows were found."""
        axes = sorted({axis for one in self.sets for axis in one})
        keys = [FLAT] if self.is_flat else [cell_name(axis) for axis in axes]
        return [*keys, *([ROWS_IN_ALL] if with_persons else []), ROWS]


def counting(
    dialect: Dialect,
    relation: str,
    schema: Schema,
    columns: Sequence[Declared],
    wanted: Wanted,
    person: Declared | None = None,
    cap: Cap | None = None,
) -> str:
    """Write the statement that counts a relation, a table or a SELECT in brackets; ``columns`` are the attributes'."""
    placed = [
        placing(dialect, attribute, column, place)
        for place, (attribute, column) in enumerate(zip(schema, columns, strict=True))
    ]
    raw = [f"{dialect.quoted(column.name)} AS r{place}" for place, column in enumerate(columns)]
    normal = [f"{one.normal} AS n{place}" for place, one in enumerate(placed)]
    cells = [f"{one.cell} AS {cell_name(axis)}" for axis, one in enumerate(placed)]
    if person is not None:
        raw.append(f"{dialect.quoted(person.name)} AS given_person")
        normal.append(f"{person_text(dialect, person, 'given_person')} AS {PERSON}")
        cells.append(PERSON)
    refusing = [axis for axis, one in enumerate(placed) if one.may_refuse]
    joins = " ".join(join for one in placed for join in one.joins)
    steps = [
        f"given AS (SELECT {', '.join(raw)} FROM {relation} AS source_rows)",
        f"normal_values AS (SELECT {', '.join(normal)} FROM given)",
        f"placed AS (SELECT {', '.join(cells)} FROM normal_values {joins})",
        f"judged AS (SELECT *, {_refused(refusing, len(schema), person is not None)} AS refused FROM placed)",
    ]
    if cap is not None:
        steps += capped(dialect, "judged", len(schema), cap, may_refuse=True)
    rows = "judged" if cap is None else "kept"
    return f"WITH {', '.join(steps)} {_grouped(dialect, schema, rows, wanted, with_persons=cap is not None)}"


def _refused(refusing: Sequence[int], attributes: int, has_person: bool) -> str:
    """Write 0 for a row that is counted, and for others a number below that tells the first attribute and why."""
    cases = [f"WHEN {cell_name(axis)} < 0 THEN {cell_name(axis)} - {REASONS * axis}" for axis in refusing]
    if has_person:
        cases.append(f"WHEN {PERSON} IS NULL THEN {-REASONS * attributes - 1}")
    return f"CASE {' '.join(cases)} ELSE 0 END" if cases else "0"


def _grouped(dialect: Dialect, schema: Schema, rows: str, wanted: Wanted, *, with_persons: bool) -> str:
    """Count the rows by every set of keys, and by how many rows persons have."""
    columns = wanted.columns(with_persons=with_persons)[:-1]
    strides = [prod(schema.shape[axis + 1 :]) for axis in range(len(schema))]
    flat = " + ".join(f"{dialect.as_whole(cell_name(axis))} * {stride}" for axis, stride in enumerate(strides))
    keys = ", ".join(
        column if column == ROWS_IN_ALL else f"CASE WHEN refused < 0 THEN refused ELSE {written} END AS {column}"
        for column in columns
        for written in [flat if column == FLAT else column]
    )
    sets = [(FLAT,)] if wanted.is_flat else [tuple(cell_name(axis) for axis in one) for one in wanted.sets]
    sets += [(ROWS_IN_ALL,)] if with_persons else []
    inner = f"SELECT {keys} FROM {rows}"
    if dialect.has_grouping_sets or len(sets) == 1:
        listed = ", ".join(f"({', '.join(one)})" for one in sets)
        # One set is grouped plainly, which databases do on several cores.
        by = f"GROUPING SETS ({listed})" if len(sets) > 1 or not sets[0] else ", ".join(sets[0])
        return _branch(dialect, f"({inner}) AS keyed", columns, columns, by)
    branches = [_branch(dialect, "keyed", columns, one, ", ".join(one) or "1 = 1") for one in sets]
    return f", keyed AS ({inner}) {' UNION ALL '.join(branches)}"


def _branch(dialect: Dialect, rows: str, columns: Sequence[str], present: Sequence[str], by: str) -> str:
    """Count rows by some columns, and write a number that no key is for those that are not about a row."""
    shown = [f"coalesce({column}, {ABSENT})" if column in present else str(ABSENT) for column in columns]
    listed = ", ".join(f"{dialect.as_whole(one)} AS {column}_key" for one, column in zip(shown, columns, strict=True))
    return f"SELECT {listed}, {dialect.as_whole('count(*)')} AS {ROWS} FROM {rows} GROUP BY {by}"
