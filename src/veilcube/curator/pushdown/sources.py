"""Which sources are counted where they lie; told without loading what counts them."""

import re

SCHEMES = ("postgresql", "postgres")
URL = re.compile(r"^([a-zA-Z][a-zA-Z0-9]*)([+][a-zA-Z0-9_]+)?://", re.DOTALL)


def is_remote(source: object) -> bool:
    """Tell whether a source is the URL of a database that counts by itself."""
    return isinstance(source, str) and (found := URL.match(source)) is not None and found[1].lower() in SCHEMES
