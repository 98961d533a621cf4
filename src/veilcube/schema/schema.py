"""The schema: the public description of a table, from which the cube's shape and every bound comes.

Schema files are TOML, read with the standard library and written with tomli-w.
"""

import hashlib
import json
import tomllib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from datetime import date
from math import prod
from pathlib import Path
from types import MappingProxyType

import tomli_w

from veilcube.errors import QueryError, SchemaError, VeilcubeError, quoted
from veilcube.schema.attribute import Attribute, Mask, read_attribute
from veilcube.schema.impossible import boxes_of, read_impossible
from veilcube.schema.showing import attributes_as_html
from veilcube.system import did_you_mean, read_path, read_text_file

MAX_BYTES = 16 * 2**20


def read_toml(
    path: str | Path, what: str = "schema file", error: type[VeilcubeError] = SchemaError
) -> dict[str, object]:
    """Return the content of a schema file, or of another file of TOML, as plain data, dates as ISO texts."""
    path = read_path(path, f"the path of a {what}", error)
    try:
        if path.stat().st_size > MAX_BYTES:
            raise error(f"the {what} {path} is larger than {MAX_BYTES // 2**20} MiB")
        text = read_text_file(path)
    except OSError as problem:
        raise error(f"cannot read the {what} {path}: {problem.strerror}; check the path") from problem
    except UnicodeDecodeError as problem:
        raise error(f"the {what} {path} is not UTF-8 text") from problem
    try:
        return {key: _plain(value) for key, value in tomllib.loads(text).items()}
    except RecursionError:
        raise error(f"the {what} {path} is nested too deeply") from None
    except tomllib.TOMLDecodeError as problem:
        raise error(f"the {what} {path} is not valid TOML: {problem}") from problem


def _plain(value: object) -> object:
    if isinstance(value, Mapping):
        return {key: _plain(inner) for key, inner in value.items()}
    if isinstance(value, list):
        return [_plain(inner) for inner in value]
    return value.isoformat() if isinstance(value, date) else value


def write_toml(
    attributes: Sequence[Mapping[str, object]],
    impossible: Sequence[Mapping[str, object]],
    path: str | Path | None,
) -> str:
    """Return plain data of attributes and impossible combinations as TOML text; with a path, also write it there."""
    text = "\n".join([*map(_attribute_text, attributes), *map(_combination_text, impossible)])
    if path is not None:
        try:
            read_path(path, "the path of a schema file", SchemaError).write_text(text, encoding="utf-8")
        except OSError as problem:
            raise SchemaError(f"cannot write the schema file {path}: {problem.strerror}") from problem
    return text


def _attribute_text(facts: Mapping[str, object]) -> str:
    plain = {key: value for key, value in facts.items() if key != "hierarchy"}
    text = f"[[attribute]]\n{tomli_w.dumps(plain)}"
    if isinstance(facts.get("hierarchy"), Mapping):
        lines = "".join(_group_lines((), facts["hierarchy"]))
        text += f"\n[attribute.hierarchy]\n{lines}"
    return text


def _group_lines(above: tuple[str, ...], spec: object) -> Iterator[str]:
    """Yield ``Office.Law = [...]`` for each list of values.

    The order of the groups is the order of the cells. Dotted keys keep it; tables would not, because TOML wants the
    plain keys of a table before its subtables.
    """
    if isinstance(spec, Mapping):
        for name, below in spec.items():
            yield from _group_lines((*above, _key_text(str(name))), below)
    else:
        yield f"{'.'.join(above)} = {tomli_w.dumps({'values': spec}).removeprefix('values = ')}"


def _key_text(name: str) -> str:
    return tomli_w.dumps({name: 0}).removesuffix(" = 0\n")


def _combination_text(entry: Mapping[str, object]) -> str:
    return "[[impossible]]\n" + "".join(f"{_key_text(name)} = {_inline_text(plain)}\n" for name, plain in entry.items())


def _inline_text(plain: object) -> str:
    if isinstance(plain, list):
        return f"[{', '.join(map(_inline_text, plain))}]"
    if isinstance(plain, Mapping):
        return f"{{{', '.join(f'{name} = {_inline_text(value)}' for name, value in plain.items())}}}"
    return tomli_w.dumps({"plain": plain}).removeprefix("plain = ").removesuffix("\n")


# What numpy's arrays can have; cubes of so many attributes exist as marginals only.
MAX_ATTRIBUTES = 64
# The columns that stand beside an attribute's labels wherever answers are a table.
RESERVED_NAMES = ("value", "low", "high", "stddev")


class Schema:
    """An ordered list of attributes with distinct names, and what is impossible among their values; immutable.

    Each entry of ``impossible`` names attributes and values, as a query does, that no row of the population combines.

    >>> from veilcube.schema import Nominal, Ordinal
    >>> schema = Schema([Ordinal("age", 17, 90), Nominal("sex", ["Female", "Male"])])
    >>> schema.shape, schema.cells
    ((74, 2), 148)
    >>> Schema.from_dict(schema.to_dict()) == schema
    True
    >>> Schema(schema.attributes, impossible=[{"age": (60, None), "sex": "Female"}])
    Schema(age (74) x sex (2): 148 cells, 1 impossible combination)
    """

    def __init__(self, attributes: Sequence[Attribute], *, impossible: Iterable[Mapping[str, object]] = ()) -> None:
        if not isinstance(attributes, Iterable):
            raise SchemaError("a schema is a list of Ordinal and Nominal attributes")
        attributes = tuple(attributes)
        if not attributes:
            raise SchemaError("a schema needs at least one attribute")
        if len(attributes) > MAX_ATTRIBUTES:
            raise SchemaError(f"a schema holds at most {MAX_ATTRIBUTES} attributes")
        if not all(isinstance(attribute, Attribute) for attribute in attributes):
            raise SchemaError("a schema is a list of Ordinal and Nominal attributes")
        names = [attribute.name for attribute in attributes]
        reserved = [name for name in names if name.lower() in RESERVED_NAMES]
        if reserved:
            raise SchemaError(
                f"an attribute cannot be called '{reserved[0]}', which names a column of every answer; "
                f"give it another name and say column='{reserved[0]}'"
            )
        repeated = {name for name in names if names.count(name) > 1}
        if repeated:
            raise SchemaError(f"the attribute '{min(repeated)}' is listed twice; give each attribute its own name")
        self._attributes = attributes
        self._positions = {name: position for position, name in enumerate(names)}
        self._impossible = read_impossible(impossible, attributes, self.axis)

    @property
    def attributes(self) -> tuple[Attribute, ...]:
        """The attributes, in the order of the cube's axes."""
        return self._attributes

    @property
    def names(self) -> tuple[str, ...]:
        """The attributes' names, in the order of the cube's axes."""
        return tuple(self._positions)

    @property
    def shape(self) -> tuple[int, ...]:
        """How many cells each axis of the cube has."""
        return tuple(attribute.size for attribute in self._attributes)

    @property
    def cells(self) -> int:
        """How many cells the cube has."""
        return prod(self.shape)

    @property
    def impossible(self) -> tuple[Mapping[str, object], ...]:
        """The impossible combinations, each as a query for its cells; lists of values are sets."""
        return tuple(MappingProxyType({one.name: one.condition for one in entry}) for entry in self._impossible)

    @property
    def impossible_boxes(self) -> tuple[tuple[Mask, ...], ...]:
        """The impossible combinations, each as one mask per attribute: its cells are those that all masks choose."""
        return boxes_of(self._impossible, self._attributes)

    def axis(self, name: str) -> int:
        """Return the position of an attribute; names are matched exactly, then without regard to case."""
        if isinstance(name, str) and name in self._positions:
            return self._positions[name]
        folded = [position for known, position in self._positions.items() if known.lower() == quoted(name).lower()]
        if len(folded) == 1:
            return folded[0]
        hint, known = did_you_mean(quoted(name), self._positions), ", ".join(self._positions)
        raise QueryError(f"there is no attribute '{quoted(name)}'; {hint}the schema has {known}")

    def axes(self, names: Iterable[str]) -> tuple[int, ...]:
        """Return the positions of different attributes; two spellings of one name are that name twice."""
        if isinstance(names, str) or not isinstance(names, Iterable):
            raise QueryError(f"attributes are named by a list such as ['{self.names[0]}']")
        found = tuple(self.axis(name) for name in names)
        if len(set(found)) != len(found):
            raise QueryError("an attribute is named twice; name each one once")
        return found

    def __getitem__(self, name: str) -> Attribute:
        return self._attributes[self.axis(name)]

    def __iter__(self) -> Iterator[Attribute]:
        return iter(self._attributes)

    def __len__(self) -> int:
        return len(self._attributes)

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Schema):
            return False
        return self is other or (self._attributes == other._attributes and self._impossible == other._impossible)

    def __hash__(self) -> int:
        return hash((self._attributes, self._impossible))

    def __repr__(self) -> str:
        axes = " x ".join(f"{attribute.name} ({attribute.size})" for attribute in self._attributes)
        count = len(self._impossible)
        listed = f", {count:,} impossible combination{'s' * (count > 1)}" if count else ""
        return f"Schema({axes}: {self.cells:,} cells{listed})"

    def _repr_html_(self) -> str:
        return attributes_as_html(f"Schema: {self.cells:,} cells", self._attributes)

    def to_dict(self) -> dict[str, object]:
        """Return the plain data it is rebuilt from."""
        facts: dict[str, object] = {"attribute": [attribute.to_dict() for attribute in self._attributes]}
        return facts | ({"impossible": self._plain_impossible()} if self._impossible else {})

    def _plain_impossible(self) -> list[dict[str, object]]:
        return [{one.name: one.plain for one in entry} for entry in self._impossible]

    @classmethod
    def from_dict(cls, data: Mapping[str, object]) -> "Schema":
        """Rebuild from ``to_dict`` or from the content of a schema file."""
        entries = data.get("attribute") if isinstance(data, Mapping) else None
        if not isinstance(entries, list) or not all(isinstance(entry, Mapping) for entry in entries):
            raise SchemaError(
                "a schema file holds [[attribute]] tables; run 'veilcube schema draft TABLE' for a template"
            )
        unknown = sorted(map(str, set(data) - {"attribute", "impossible"}))
        if unknown:
            raise SchemaError(
                f"the schema has unknown parts: {', '.join(unknown)}; "
                "only [[attribute]] and [[impossible]] tables are allowed"
            )
        impossible = data.get("impossible", [])
        if not isinstance(impossible, list):
            raise SchemaError("impossible combinations are a list; begin each with [[impossible]]")
        return cls([read_attribute(entry) for entry in entries], impossible=impossible)

    def fingerprint(self) -> str:
        """Return a short digest that two equal schemas share."""
        # Keys keep their order: the order of a hierarchy's groups is the order of the cells.
        canonical = json.dumps(self.to_dict(), separators=(",", ":"))
        return hashlib.sha256(canonical.encode()).hexdigest()[:16]

    def to_toml(self, path: str | Path | None = None) -> str:
        """Return the schema as TOML text; with a path, also write it there."""
        return write_toml([attribute.to_dict() for attribute in self._attributes], self._plain_impossible(), path)

    @classmethod
    def read(cls, source: "Schema | str | Path") -> "Schema":
        """Return a schema as it is, or read it from the file that a path names."""
        if isinstance(source, Schema):
            return source
        if isinstance(source, str | Path):
            return cls.from_toml(source)
        raise SchemaError("a schema is a veilcube.Schema or the path of a schema file")

    @classmethod
    def from_toml(cls, path: str | Path) -> "Schema":
        """Read a schema file."""
        return cls.from_dict(read_toml(path))


def require_schema(schema: object, user: str) -> Schema:
    """Return a schema that a question is about; ``user`` says what needs it."""
    if not isinstance(schema, Schema):
        raise QueryError(f"{user} needs a veilcube.Schema; read one with veilcube.Schema.from_toml")
    return schema
