"""Schemas as commands show them: as a table for people, as plain data for programs."""

from collections.abc import Sequence

from veilcube.cli.shared.output import show_table
from veilcube.schema import Attribute, Bins, Nominal, Ordinal, Schema

MOST_EDGES_SHOWN = 6


def describe_schema(schema: Schema) -> dict[str, object]:
    """Return a schema as plain data with its size."""
    return {
        "attributes": [attribute.to_dict() | {"cells": attribute.size} for attribute in schema],
        "shape": list(schema.shape),
        "cells": schema.cells,
        "fingerprint": schema.fingerprint(),
    }


def show_schema(schema: Schema) -> None:
    """Print a schema as a table, one attribute a row."""
    columns = ("attribute", "kind", "column", "domain", "cells", "outside", "missing")
    rows = [
        (
            attribute.name,
            attribute.kind,
            attribute.column,
            _domain(attribute),
            f"{attribute.size:,}",
            attribute.outside,
            attribute.missing,
        )
        for attribute in schema
    ]
    show_table(columns, rows, numbers=["cells"])


def _domain(attribute: Attribute) -> str:
    if isinstance(attribute, Ordinal):
        division = attribute.division
        return _edges(division) if isinstance(division, Bins) else division.domain()
    if not isinstance(attribute, Nominal):
        return ""
    shown = attribute.hierarchy.groups or attribute.values
    names = ", ".join(shown[:4]) + (", ..." if len(shown) > 4 else "")
    return f"{names} ({len(attribute.values)} values)" if attribute.hierarchy.groups else names


def _edges(bins: Bins) -> str:
    edges = [str(edge) for edge in bins.edges]
    if len(edges) > MOST_EDGES_SHOWN:
        edges = [*edges[: MOST_EDGES_SHOWN - 2], "...", edges[-1]]
    return f"edges {', '.join(edges)}"


def attributes_of_option(schema: Schema, given: Sequence[str]) -> list[str]:
    """Return attributes that were listed with commas or one by one; a name may have a comma of its own."""
    known = {name.lower() for name in schema.names}
    found: list[str] = []
    for text in given:
        found += [text] if text.lower() in known else [name.strip() for name in text.split(",")]
    return found
