"""Schema files: TOML, read with the standard library and written with tomli-w."""

import tomllib
from collections.abc import Iterator, Mapping, Sequence
from datetime import date
from pathlib import Path

import tomli_w

from veilcube.errors import SchemaError
from veilcube.system import read_text
from veilcube.system.arguments import read_path

MAX_BYTES = 16 * 2**20


def read_toml(path: str | Path) -> dict[str, object]:
    """Return the content of a schema file as plain data, dates as ISO texts."""
    path = read_path(path, "the path of a schema file", SchemaError)
    try:
        if path.stat().st_size > MAX_BYTES:
            raise SchemaError(f"the schema file {path} is larger than {MAX_BYTES // 2**20} MiB")
        text = read_text(path)
    except OSError as problem:
        raise SchemaError(f"cannot read the schema file {path}: {problem.strerror}; check the path") from problem
    except UnicodeDecodeError as problem:
        raise SchemaError(f"the schema file {path} is not UTF-8 text") from problem
    try:
        return {key: _plain(value) for key, value in tomllib.loads(text).items()}
    except RecursionError:
        raise SchemaError(f"the schema file {path} is nested too deeply") from None
    except tomllib.TOMLDecodeError as problem:
        raise SchemaError(f"the schema file {path} is not valid TOML: {problem}") from problem


def _plain(value: object) -> object:
    if isinstance(value, Mapping):
        return {key: _plain(inner) for key, inner in value.items()}
    if isinstance(value, list):
        return [_plain(inner) for inner in value]
    return value.isoformat() if isinstance(value, date) else value


def write_toml(attributes: Sequence[Mapping[str, object]], path: str | Path | None) -> str:
    """Return the plain data of attributes as TOML text; with a path, also write it there."""
    text = "\n".join(_attribute_text(facts) for facts in attributes)
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
