"""Attributes in words, and a schema as notebooks show it."""

from collections.abc import Iterable, Sequence

from veilcube.schema.attribute import Attribute, Nominal, Ordinal
from veilcube.schema.divisions import Bins, Calendar
from veilcube.system import as_html

MOST_VALUES = 12


def values_in_words(attribute: Attribute) -> str:
    """Return what values an attribute may have, the first ones where they are many.

    >>> values_in_words(Ordinal("age", 17, 90)), values_in_words(Ordinal("pay", edges=[0, 10, 20]))
    ('17 to 90', 'bins between 0, 10, 20')
    """
    if isinstance(attribute, Ordinal):
        division = attribute.division
        if isinstance(division, Bins):
            return f"bins between {first_of([str(edge) for edge in division.edges])}"
        unit = f", by {division.unit}" if isinstance(division, Calendar) else ""
        facts = division.to_dict()
        return f"{facts['low']} to {facts['high']}{unit}"
    if not isinstance(attribute, Nominal):
        return ""
    tree = attribute.hierarchy
    if tree.groups:
        return f"{len(attribute.values):,} values in {len(tree.groups):,} groups: {first_of(tree.groups)}"
    return first_of(attribute.values)


def first_of(words: Sequence[str]) -> str:
    """Return the first words of a list, and how many more there are."""
    shown = ", ".join(words[:MOST_VALUES])
    return f"{shown} and {len(words) - MOST_VALUES:,} more" if len(words) > MOST_VALUES else shown


def attributes_as_html(caption: str, attributes: Iterable[Attribute], note: str = "") -> str:
    """Return attributes as a table for notebooks."""
    rows = [(one.name, one.kind, values_in_words(one), f"{one.size:,}") for one in attributes]
    return as_html(caption, ("attribute", "kind", "values", "cells"), rows, note, numbers=["cells"])
