"""From what a caller wrote to the files that are meant: paths, globs and lists of them."""

import glob
import os
from collections.abc import Sequence
from pathlib import Path
from typing import TypeAlias

from veilcube.errors import TableError

PathText: TypeAlias = str | os.PathLike[str]


def find_files(written: PathText | Sequence[PathText]) -> list[Path]:
    """Return the files that a path, a glob or a list of them means, each once, in order."""
    entries = [written] if isinstance(written, str | os.PathLike) else list(written)
    if not entries:
        raise TableError("the list of files is empty; name at least one CSV or Parquet file")
    if not all(isinstance(entry, str | os.PathLike) for entry in entries):
        raise TableError("a list that is to be counted must hold paths of CSV or Parquet files only")
    found = [path for entry in entries for path in _matches(os.fspath(entry))]
    return list(dict.fromkeys(found))


def find_file(text: str) -> Path:
    """Return the one file that a path means."""
    path = Path(text).expanduser()
    if not path.is_file():
        raise TableError(f"there is no file {text}; check the path")
    return _readable(path)


def without_wildcards(path: Path) -> str:
    """Write a path so that the engine takes ``*``, ``?`` and ``[`` in it as they stand."""
    return "".join(f"[{letter}]" if letter in "*?[" else letter for letter in str(path))


def _matches(text: str) -> list[Path]:
    path = Path(text).expanduser()
    if path.is_dir():
        raise TableError(f"{text} is a folder; name the files in it, for example {path / '*.parquet'}")
    if path.is_file() or not glob.has_magic(text):
        return [find_file(text)]
    # Path.glob refuses absolute patterns.
    matching = sorted(Path(match) for match in glob.glob(str(path), recursive=True))  # noqa: PTH207
    files = [_readable(match) for match in matching if match.is_file()]
    if not files:
        raise TableError(f"no file matches {text}; check the pattern")
    return files


def _readable(path: Path) -> Path:
    if not os.access(path, os.R_OK):
        raise TableError(f"the file {path} may not be read by this user; ask for permission or copy it")
    if path.stat().st_size == 0:
        raise TableError(f"the file {path} is empty; check that it was written completely")
    return path
