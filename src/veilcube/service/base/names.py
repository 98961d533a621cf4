"""Names of datasets, releases, schemas and plans: they stand in URLs and are names of files, so few characters do."""

import re

from veilcube.errors import quoted
from veilcube.service.base.errors import BadRequestError

NAME_PATTERN = r"^[A-Za-z0-9][A-Za-z0-9_-]{0,63}$"
_NAME = re.compile(NAME_PATTERN)


def read_name(name: object, what: str) -> str:
    """Return a name; refuses one that could be taken for a path.

    >>> read_name("adult-2024", "a release")
    'adult-2024'
    """
    if not isinstance(name, str) or not _NAME.fullmatch(name):
        raise BadRequestError(
            f"the name of {what} has 1 to 64 letters, digits, '-' and '_', and begins with a letter or a digit, which "
            f"'{quoted(name)}' does not"
        )
    return name
