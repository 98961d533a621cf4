"""Connect to a service."""

from types import TracebackType

from veilcube.service.client.release import RemoteRelease
from veilcube.service.client.table import RemoteTable
from veilcube.service.client.transport import Transport
from veilcube.system import read_text


def connect(url: str, key: str) -> "Connection":
    """Connect to a veilcube service with a key that a curator of it made.

    ``vc.connect("http://127.0.0.1:8000", key="vc_...").open("adult")`` is asked as a local release is, and
    ``.table("visits")`` as a protected table.
    """
    return Connection(Transport(url, key))


class Connection:
    """A service, as one key sees it; may be used as a context that closes it."""

    def __init__(self, transport: Transport) -> None:
        self._transport = transport

    def __repr__(self) -> str:
        return f"Connection({self._transport.url!r})"

    def __enter__(self) -> "Connection":
        return self

    def __exit__(
        self, kind: type[BaseException] | None, problem: BaseException | None, at: TracebackType | None
    ) -> None:
        self.close()

    def releases(self) -> list[str]:
        """Return the names of the releases."""
        return list(self._transport.get("releases")["releases"])

    def open(self, name: str) -> RemoteRelease:
        """Return a release, which is asked over there."""
        return RemoteRelease(self._transport, read_text(name, "the name of a release"))

    def tables(self) -> list[str]:
        """Return the names of the protected tables."""
        return list(self._transport.get("tables")["tables"])

    def table(self, name: str) -> RemoteTable:
        """Return a protected table, which is asked over there: what it answers is charged to the name of the key."""
        return RemoteTable.whole(self._transport, read_text(name, "the name of a table"))

    def close(self) -> None:
        """Let go of the connection."""
        self._transport.close()
