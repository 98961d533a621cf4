"""Hierarchies from codebooks: CSV files with a row for each code, which names its parent or all of its levels.

A codebook is public. What is wrong with one is told with its lines, in one sentence, and nothing is guessed.
"""

import csv
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import TypeAlias

from veilcube.errors import SchemaError, quoted
from veilcube.schema.hierarchy import MAX_DEPTH, HierarchySpec
from veilcube.system import did_you_mean, read_path, read_text, read_text_file

_DELIMITERS = ",;\t"
_LONGEST_CIRCLE = 200
# Codes in their order, each with its parent ("" for the top) and the line where it was read.
Parents: TypeAlias = dict[str, tuple[str, int]]


def codebook(
    path: str | Path, *, value: str = "code", parent: str = "parent", levels: Sequence[str] | None = None
) -> HierarchySpec:
    """Read a hierarchy for ``Nominal(..., hierarchy=...)`` from a codebook.

    Each row holds a code in the column ``value`` and the code of its group in the column ``parent``, empty at the top.
    Codes that are nobody's parent are the values of the attribute, the others its groups, in the order of the file.
    With ``levels``, a list of columns from coarse to fine, each row holds a whole path instead; a level may be empty.

    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     file = Path(folder, "jobs.csv")
    ...     _ = file.write_text("code,parent\\nCare,\\nNurse,Care\\nAide,Care\\n")
    ...     codebook(file)
    {'Care': ['Nurse', 'Aide']}
    """
    place = read_path(path, "the codebook", SchemaError)
    if levels is None:
        columns = [read_text(value, "value, a column of the codebook,", SchemaError)]
        columns.append(read_text(parent, "parent, a column of the codebook,", SchemaError))
        parents = _by_parent(place, columns)
    else:
        if isinstance(levels, str) or not isinstance(levels, Sequence) or len(levels) < 2:
            raise SchemaError("levels lists at least two columns of the codebook, from coarse to fine")
        columns = [read_text(level, "each of levels, a column of the codebook,", SchemaError) for level in levels]
        parents = _by_levels(place, columns)
    if not parents:
        raise SchemaError(f"the codebook {place} has no rows; add one for each code")
    _require_tree(place, parents)
    return _spec_of(place, parents)


def _rows(place: Path, columns: Sequence[str]) -> Iterator[tuple[int, list[str]]]:
    """Yield the wanted fields of each row that is not blank, with its line."""
    try:
        text = read_text_file(place, "utf-8-sig")
    except (OSError, UnicodeDecodeError) as problem:
        reason = getattr(problem, "strerror", None) or "it is no UTF-8 text"
        raise SchemaError(f"cannot read the codebook {place} ({reason}); name a CSV file") from problem
    first = text.partition("\n")[0]
    reader = csv.reader(text.splitlines(keepends=True), delimiter=max(_DELIMITERS, key=first.count), strict=True)
    try:
        head = [name.strip() for name in next(reader, [])]
        for name in columns:
            if head.count(name) != 1:
                what = "has the column twice" if name in head else f"has no column '{quoted(name)}'"
                raise SchemaError(
                    f"the codebook {place} {what}; {did_you_mean(name, head)}its columns are {quoted(', '.join(head))}"
                )
        for row in reader:
            if any(field.strip() for field in row):
                if len(row) != len(head):
                    raise SchemaError(
                        f"line {reader.line_num} of the codebook {place} has {len(row)} fields and its header "
                        f"{len(head)}; correct it"
                    )
                yield reader.line_num, [row[head.index(name)].strip() for name in columns]
    except csv.Error as problem:
        raise SchemaError(
            f"line {reader.line_num} of the codebook {place} is no CSV ({problem}); correct it"
        ) from problem


def _by_parent(place: Path, columns: Sequence[str]) -> Parents:
    parents: Parents = {}
    for line, (code, parent) in _rows(place, columns):
        if not code:
            raise SchemaError(f"line {line} of the codebook {place} has no code; add it, or remove the line")
        if code in parents:
            raise SchemaError(
                f"the code '{quoted(code)}' is in the codebook {place} twice, on lines {parents[code][1]} and {line}; "
                "keep one"
            )
        parents[code] = (parent, line)
    for code, (parent, line) in parents.items():
        if parent and parent not in parents:
            raise SchemaError(
                f"the parent '{quoted(parent)}' of '{quoted(code)}', on line {line} of the codebook {place}, is no "
                f"code of it; {did_you_mean(parent, parents)}add a row for it, or correct it"
            )
    return parents


def _by_levels(place: Path, columns: Sequence[str]) -> Parents:
    parents: Parents = {}
    for line, path in _rows(place, columns):
        if not path[-1]:
            raise SchemaError(f"line {line} of the codebook {place} has no '{columns[-1]}'; add it, or remove the line")
        above = ""
        for name in filter(None, path[:-1]):
            known = parents.setdefault(name, (above, line))
            if known[0] != above:
                raise SchemaError(
                    f"the group '{quoted(name)}' of the codebook {place} is under '{quoted(known[0])}' on line "
                    f"{known[1]} and under '{quoted(above)}' on line {line}; give each a name of its own"
                )
            above = name
        if path[-1] in parents:
            raise SchemaError(
                f"'{quoted(path[-1])}' is in the codebook {place} twice, on lines {parents[path[-1]][1]} and "
                f"{line}; keep one"
            )
        parents[path[-1]] = (above, line)
    return parents


def _require_tree(place: Path, parents: Mapping[str, tuple[str, int]]) -> None:
    """Refuse a code that is above itself, and one that is too deep."""
    depths = {"": 0}
    for code in parents:
        path: list[str] = []
        at = code
        while at not in depths:
            if at in path:
                circle = " in ".join([*path[path.index(at) :], at])
                told = quoted(circle if len(circle) <= _LONGEST_CIRCLE else f"{circle[:_LONGEST_CIRCLE]}...")
                raise SchemaError(f"the codebook {place} goes in a circle, {told}; correct one of the parents")
            if len(path) > MAX_DEPTH + 1:
                break
            path.append(at)
            at = parents[at][0]
        for step in reversed(path):
            depths[step] = depths.get(parents[step][0], MAX_DEPTH) + 1
        if depths[code] > MAX_DEPTH:
            raise SchemaError(
                f"'{quoted(code)}' lies deeper than {MAX_DEPTH} levels in the codebook {place}; leave some out"
            )


def _spec_of(place: Path, parents: Mapping[str, tuple[str, int]]) -> HierarchySpec:
    below: dict[str, list[str]] = {}
    for code, (parent, _) in parents.items():
        below.setdefault(parent, []).append(code)
    alone = next((code for code in below[""] if code not in below), None)
    if alone is not None:
        remedy = "list the codes as values" if len(below) == 1 else "give it a parent"
        raise SchemaError(
            f"'{quoted(alone)}' is in no group of the codebook {place}, and a hierarchy has groups; {remedy}"
        )

    def spec(codes: Sequence[str]) -> object:
        entries = [{code: spec(below[code])} if code in below else code for code in codes]
        if all(isinstance(entry, dict) for entry in entries):
            return {name: inner for entry in entries for name, inner in entry.items()}  # type: ignore[union-attr]
        return entries

    return spec(below[""])  # type: ignore[return-value]
