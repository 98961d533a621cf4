"""Where tables lie: files below the data folder, or places that the operator declared by name. Never anywhere else.

Who may register a dataset over HTTP may not thereby read any file of the machine, so a file is named by plain parts
without links, and a database by the name that stands before its address on the server.
"""

import re
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from veilcube.errors import quoted
from veilcube.service.base import BadRequestError, ServiceError, Settings, read_name

FILE_PATTERN = r"^[A-Za-z0-9_][A-Za-z0-9_.-]*(/[A-Za-z0-9_][A-Za-z0-9_.-]*){0,7}$"
TABLE_PATTERN = r"^[A-Za-z_][A-Za-z0-9_]{0,62}(\.[A-Za-z_][A-Za-z0-9_]{0,62}){0,2}$"
DECLARED = "sources.toml"
LONGEST = 300
_FILE, _TABLE = re.compile(FILE_PATTERN), re.compile(TABLE_PATTERN)
_DATABASES = (".duckdb", ".db")


@dataclass(frozen=True)
class Place:
    """Where a table lies, as curators name it: a file below the data folder, or a declared name."""

    kind: str
    name: str
    table: str | None = None

    @classmethod
    def read(cls, file: str | None, declared: str | None, table: str | None) -> "Place":
        """Return a place; refuses a name that could lead elsewhere."""
        if (file is None) == (declared is None):
            raise BadRequestError("name the table either by file, below the data folder, or by declared, as a source")
        if table is not None and not _TABLE.fullmatch(table):
            raise BadRequestError("table is the name of a table or view in a database, such as visits or clinic.visits")
        if declared is not None:
            return cls("declared", read_name(declared, "a source"), table)
        if file is None or len(file) > LONGEST or not _FILE.fullmatch(file):
            raise BadRequestError(
                "file is a path below the data folder of the service, such as visits.csv or 2024/visits.parquet, of "
                f"letters, digits, '.', '-' and '_', which '{quoted(file)}' is not"
            )
        return cls("file", file, table)

    @classmethod
    def parse(cls, text: str, table: str | None) -> "Place":
        """Return a place from its text."""
        kind, _, name = text.partition(":")
        return cls(kind, name, table)

    def __str__(self) -> str:
        return f"{self.kind}:{self.name}"


def locate(settings: Settings, place: Place) -> str:
    """Return what the library reads a place by: a path or an address. It stays on the server."""
    if place.kind == "declared":
        known = declared_sources(settings)
        if place.name not in known:
            raise BadRequestError(
                f"no source called '{place.name}' was declared; the operator does so in {DECLARED} or with --source"
            )
        return known[place.name]
    folder = settings.below("data").resolve()
    path = folder / place.name
    # A link could lead out of the folder, and what is no regular file could block whoever reads it.
    if path.resolve() != path or not path.is_file():
        raise BadRequestError(f"there is no file data/{place.name}; copy it into the data folder of the service")
    if path.suffix in _DATABASES:
        return f"duckdb:///{path}"
    return str(path)


def declared_sources(settings: Settings) -> Mapping[str, str]:
    """Return what the operator declared: in a file, which no list of processes shows, or on the command line."""
    path = settings.folder / DECLARED
    if not path.is_file():
        return settings.sources
    try:
        found = tomllib.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError) as problem:
        raise ServiceError(
            f'{path} cannot be read as TOML; write lines such as visits = "postgresql://..."'
        ) from problem
    if not all(isinstance(place, str) for place in found.values()):
        raise ServiceError(f'{path} holds names and addresses, in lines such as visits = "postgresql://..."')
    return {**found, **settings.sources}


def data_files(settings: Settings) -> list[str]:
    """Return the files below the data folder that may be registered."""
    folder: Path = settings.below("data")
    found = (path.relative_to(folder).as_posix() for path in folder.rglob("*") if path.is_file())
    return sorted(
        name for name in found if _FILE.fullmatch(name) and (folder / name).resolve() == folder.resolve() / name
    )
