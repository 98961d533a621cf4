"""Schema files: TOML, read with the standard library and written with tomli-w."""

import tomllib
from collections.abc import Mapping
from datetime import date
from pathlib import Path

import tomli_w

from veilcube.errors import SchemaError

MAX_BYTES = 16 * 2**20


def read_toml(path: str | Path) -> dict[str, object]:
    """Return the content of a schema file as plain data, dates as ISO texts."""
    path = Path(path)
    try:
        if path.stat().st_size > MAX_BYTES:
            raise SchemaError(f"the schema file {path} is larger than {MAX_BYTES // 2**20} MiB")
        text = path.read_text(encoding="utf-8")
    except OSError as problem:
        raise SchemaError(f"cannot read the schema file {path}: {problem.strerror}; check the path") from problem
    except UnicodeDecodeError as problem:
        raise SchemaError(f"the schema file {path} is not UTF-8 text") from problem
    try:
        return {key: _plain(value) for key, value in tomllib.loads(text).items()}
    except tomllib.TOMLDecodeError as problem:
        raise SchemaError(f"the schema file {path} is not valid TOML: {problem}") from problem


def _plain(value: object) -> object:
    if isinstance(value, Mapping):
        return {key: _plain(inner) for key, inner in value.items()}
    if isinstance(value, list):
        return [_plain(inner) for inner in value]
    return value.isoformat() if isinstance(value, date) else value


def write_toml(data: Mapping[str, object], path: str | Path | None) -> str:
    """Return plain data as TOML text; with a path, also write it there."""
    text = tomli_w.dumps(data)
    if path is not None:
        try:
            Path(path).write_text(text, encoding="utf-8")
        except OSError as problem:
            raise SchemaError(f"cannot write the schema file {path}: {problem.strerror}") from problem
    return text
