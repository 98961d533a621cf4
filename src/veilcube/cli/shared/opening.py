"""Releases opened by name: a file that never was one, such as the table itself, is told apart from a damaged one.

Apart from other files, because commands that open none need not load what answers.
"""

from pathlib import Path

from veilcube.analyst import Release, open_release
from veilcube.errors import ReleaseFileError

_ARCHIVE_BEGINS = b"PK\x03\x04"


def open_release_file(file: Path) -> Release:
    """Open a release file; a table, or any other file that is no archive, is refused with how to make a release."""
    if _is_no_archive(file):
        raise ReleaseFileError(f"{file} is not a release file; make one with 'veilcube release'")
    return open_release(file)


def _is_no_archive(file: Path) -> bool:
    """Say whether a file is surely no archive; what cannot be read is left to the reader of releases to explain."""
    try:
        # Only a regular file: looking into a pipe would take away what it holds.
        if not file.is_file():
            return False
        with file.open("rb") as stream:
            return stream.read(len(_ARCHIVE_BEGINS)) != _ARCHIVE_BEGINS
    except OSError:
        return False
