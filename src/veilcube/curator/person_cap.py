"""Keep at most ``max_rows`` rows of each person: the step that makes one person's influence on the cube bounded.

Claim: let c(T) be the counts of the kept rows of a table T. If T' is T without one person, then c(T) - c(T') >= 0 and
its entries sum to at most ``max_rows``, so the L1 sensitivity for adding or removing a person is ``max_rows``.
Proof: the kept rows of a person are the first ``max_rows`` in an order of this person's rows by a digest of the person,
the row's normalised values and, among equal rows, a running number. The order uses nothing else: no row ids, no
positions, no other person's rows. So every other person keeps the same rows in T and T', up to a swap of equal rows,
which have the same cell.

The digest (MD5, as a pseudo-random order, not as a secret) makes the choice look random, stable over runs, machines and
row orders; the running number gives each of several equal rows its own chance, so the choice favours no row.
"""

from collections.abc import Sequence
from typing import cast

import duckdb

PERSON = "person"
NOBODY = "nobody"
_SEPARATOR = "chr(31)"


def cap_rows(rows: duckdb.DuckDBPyRelation, values: Sequence[str], max_rows: int) -> duckdb.DuckDBPyRelation:
    """Return the kept rows: the columns ``values``, and a flag, ``nobody``, on rows without a person."""
    listed = ", ".join(values)
    # Whole numbers come as BIGINT or DOUBLE, depending on the source; as DOUBLE they have one text and so one digest.
    floats = [f"CAST({value} AS DOUBLE)" for value in values]
    # Equal values must have equal texts, or equal rows would not be interchangeable: -0.0 becomes 0.
    plain = ", ".join(f"CASE WHEN {value} = 0 THEN 0 ELSE {value} END AS {value}" for value in values)
    texts = ", ".join(f"coalesce(CAST({value} AS VARCHAR), '')" for value in floats)
    digest = f"md5_number(concat_ws({_SEPARATOR}, {PERSON}, {texts}, CAST(running AS VARCHAR)))"
    # The values follow the digest so that rows with equal digests, should there be any, are still in a fixed order.
    order = ", ".join(f"{key} ASC NULLS FIRST" for key in ["digest", *floats, "running"])
    kept = rows.project(f"{PERSON}, {plain}").query(
        "given",
        f"""
        WITH numbered AS (
            SELECT *, row_number() OVER (PARTITION BY {PERSON}, {", ".join(floats)}) AS running FROM given
        ), digested AS (
            SELECT *, {digest} AS digest FROM numbered
        )
        SELECT {listed}, {PERSON} IS NULL AS {NOBODY} FROM digested
        QUALIFY row_number() OVER (PARTITION BY {PERSON} ORDER BY {order}) <= {max_rows}
        """,
    )
    return cast(duckdb.DuckDBPyRelation, kept)  # None only for statements that return nothing
