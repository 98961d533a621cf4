"""What counts as history: histories, releases of any strategy, ledgers' histories, or a list of these."""

from collections.abc import Sequence
from typing import Protocol, TypeAlias, runtime_checkable

from veilcube.errors import QueryError
from veilcube.record import History, ReleaseRecord
from veilcube.system import DEEPEST_LIST


@runtime_checkable
class HasRecord(Protocol):
    """A release as an analyst holds it."""

    @property
    def record(self) -> ReleaseRecord:
        """The plain public data behind it."""


@runtime_checkable
class HasAnswered(Protocol):
    """Whatever remembers the answers it gave, such as the history of a ledger's dataset."""

    @property
    def answered(self) -> History:
        """The answers that were given so far."""


@runtime_checkable
class HasFacts(Protocol):
    """A release that was refined with facts, which are no measurements."""

    @property
    def unrefined(self) -> HasRecord:
        """The release as it was measured."""


HistorySource: TypeAlias = History | ReleaseRecord | HasRecord | HasAnswered | Sequence["HistorySource"]


def read_history(source: HistorySource, depth: int = 0) -> History:
    """Return one history of everything that ``source`` holds; the parts' noise must be independent of each other."""
    if isinstance(source, History):
        return source
    if isinstance(source, ReleaseRecord):
        return History.of_release(source)
    if isinstance(source, HasFacts):
        raise QueryError(
            "a refined release holds facts besides measurements, and history would lose them; give its .unrefined, "
            "and facts as total=... or as a veilcube.History whose variances are 0"
        )
    if isinstance(source, HasRecord):
        return History.of_release(source.record)
    if isinstance(source, HasAnswered):
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
    if isinstance(source, History | ReleaseRecord):
        return [source]
    if isinstance(source, HasRecord):
        return [source.record]
    if isinstance(source, Sequence) and not isinstance(source, str | bytes):
        return [found for part in source for found in told_sources(part)]
    return [source]
