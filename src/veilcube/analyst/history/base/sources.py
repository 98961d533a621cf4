"""What counts as history: histories, releases of any strategy, ledgers' histories, or a list of these."""

from collections.abc import Sequence
from typing import Protocol, TypeAlias, TypeGuard

from veilcube.errors import QueryError
from veilcube.record import History, ReleaseRecord
from veilcube.system import DEEPEST_LIST


class Learnable(Protocol):
    """What models learn from: a history, a release, the history of a ledger's dataset."""

    @property
    def answered(self) -> History:
        """Every noisy answer that it holds, as a linear query with its value and the variance of its noise."""


HistorySource: TypeAlias = Learnable | ReleaseRecord | Sequence["HistorySource"]


def read_history(source: HistorySource, depth: int = 0) -> History:
    """Return one history of everything that ``source`` holds; the parts' noise must be independent of each other."""
    if isinstance(source, ReleaseRecord):
        return History.of_release(source)
    if _is_learnable(source):
        return source.answered
    if isinstance(source, Sequence) and not isinstance(source, str | bytes):
        if not source:
            raise QueryError("the history is empty, so it teaches nothing; give at least one history or release")
        if depth > DEEPEST_LIST:
            raise QueryError("the history has lists in lists without end; give a list of histories and releases")
        return History.merge(*(read_history(part, depth + 1) for part in source))
    raise QueryError(
        "history is a veilcube.History, a release, the history of a ledger's dataset, or a list of these, "
        f"not {type(source).__name__}"
    )


def told_sources(source: HistorySource) -> list[object]:
    """Return the single sources of history that ``source`` lists, so that one which is used twice counts once."""
    if isinstance(source, Sequence) and not isinstance(source, str | bytes) and not _is_learnable(source):
        return [found for part in source for found in told_sources(part)]
    # A release and its record are one source.
    return [getattr(source, "record", source)]


def _is_learnable(source: object) -> TypeGuard[Learnable]:
    """Whether its class says what can be learned from it; asking the object itself would work it out."""
    return hasattr(type(source), "answered")
