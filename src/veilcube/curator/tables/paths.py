"""From what a caller wrote to the files that are meant: paths, globs and lists of them."""

import glob
import os
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import TypeAlias

from veilcube.curator.tables.table import always, shielded
from veilcube.errors import TableError

PathText: TypeAlias = str | os.PathLike[str]

_UNUSABLE = always(
    "a path cannot be looked up on this machine; check that it is not too long and has no odd characters"
)


def find_files(written: PathText | Sequence[PathText]) -> list[Path]:
    """Return the files that a path, a glob or a list of them means, each once however it is spelled, in order."""
    entries = [written] if isinstance(written, str | os.PathLike) else list(written)
    if not entries:
        raise TableError("the list of files is empty; name at least one CSV or Parquet file")
    if not all(isinstance(entry, str | os.PathLike) for entry in entries):
        raise TableError("a list that is to be counted must hold paths of CSV or Parquet files only")
    return shielded(lambda: _each_once(path for entry in entries for path in _matches(os.fspath(entry))), _UNUSABLE)


def find_file(text: str) -> Path:
    """Return the one file that a path means."""
    return shielded(lambda: _existing(text), _UNUSABLE)


def without_wildcards(path: Path) -> str:
    """Write a path so that the engine takes ``*``, ``?`` and ``[`` in it as they stand."""
    return "".join(f"[{letter}]" if letter in "*?[" else letter for letter in str(path))


def _existing(text: str) -> Path:
    path = Path(text).expanduser()
    if not path.is_file():
        raise TableError(f"there is no file {text}; check the path")
    return _readable(path)


def _each_once(paths: Iterable[Path]) -> list[Path]:
    """Drop other names of a file, be they spellings or links: its people would count twice and exceed their bound."""
    known: dict[tuple[int, int], Path] = {}
    for path in paths:
        facts = path.stat()
        known.setdefault((facts.st_dev, facts.st_ino), path)
    return list(known.values())


def _matches(text: str) -> list[Path]:
    path = Path(text).expanduser()
    if path.is_dir():
        raise TableError(f"{text} is a folder; name the files in it, for example {path / '*.parquet'}")
    if path.is_file() or not glob.has_magic(text):
        return [_existing(text)]
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
