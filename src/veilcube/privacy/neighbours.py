"""Which two tables must be hard to tell apart: the relation that every privacy claim is about."""

from enum import StrEnum

from veilcube.errors import PrivacyError


class Neighbours(StrEnum):
    """``add-remove``: one unit (row or person) more or less. ``replace``: one unit exchanged, their number public."""

    ADD_REMOVE = "add-remove"
    REPLACE = "replace"

    @classmethod
    def read(cls, text: str) -> "Neighbours":
        """Return the relation a user named."""
        try:
            return cls(text)
        except ValueError as problem:
            raise PrivacyError(f"neighbours='{text}' is not known; use 'add-remove' or 'replace'") from problem
