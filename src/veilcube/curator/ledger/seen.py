"""Which table a dataset was charged for, so that a changed one is noticed. PRIVATE, and for the curator alone.

That a table has changed is a fact about private data, so nothing of it reaches a release, or the ledger, which analysts
may read. It lies in a file beside the ledger that only its owner may read: a random key, and one line for each charge,
with a keyed digest of what was counted (BLAKE2b). Without the key a digest tells nothing; with it, small tables could
be guessed, so the file belongs where the table is. Who loses it loses the notice and nothing else.
"""

import json
import os
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import asdict, dataclass
from pathlib import Path

from veilcube.system import begin_key_file, read_key_file

_ENDING = ".seen"
_LARGEST = 2**24
_CHANGED = (
    "the table is not the one that dataset '{dataset}' was charged for at {at}: other rows were counted under the same "
    "schema. Charges to one dataset add up what is told about the same people, so go on if this is their table, "
    "corrected or longer by now, and give a table of other people a dataset of its own (docs/how-to/"
    "publish-every-month.md). Only you see this line: neither the release nor the ledger tells it"
)
_UNREADABLE = (
    "{path} cannot be used, so that nobody would notice if the table of a dataset changed; repair or delete it"
)


@dataclass(frozen=True)
class Sight:
    """A table as it was when a dataset was charged for it; ``basis`` says how it was counted, ``digest`` what came out.

    Digests of one basis differ where the tables do, but for a chance of 2 ** -128.
    """

    dataset: str
    basis: str
    digest: str
    at: str


class SeenTables:
    """The file beside a ledger."""

    def __init__(self, ledger: Path) -> None:
        whole = Path(os.path.realpath(ledger))
        self._path = whole.with_name(whole.name + _ENDING)

    def __repr__(self) -> str:
        return "SeenTables(not shown)"

    def is_begun(self) -> bool:
        """Whether there is such a file."""
        return self._path.exists()

    def key(self, *, begin: bool = False) -> bytes | None:
        """Return the key, which whoever begins the file makes; None where there is no such file or it is unusable."""
        try:
            if begin and not self.is_begun():
                begin_key_file(self._path)
            return read_key_file(self._path)
        except OSError:
            return None

    def unusable(self) -> str:
        """Say that the file cannot be used."""
        return _UNREADABLE.format(path=self._path)

    def change(self, sight: Sight) -> str | None:
        """Tell, for the curator's eyes, that the table is not the one that was seen last; None if it is, or is new."""
        last = None
        with suppress(OSError, ValueError):
            last = next((one for one in self._latest_first() if _same_place(one, sight)), None)
        if last is None or last.digest == sight.digest:
            return None
        return _CHANGED.format(dataset=sight.dataset, at=last.at)

    def note(self, sight: Sight) -> None:
        """Add a line; what cannot be written is left out, since the charge that it is about is made already."""
        line = json.dumps(asdict(sight)).encode("ascii") + b"\n"
        with suppress(OSError):
            # One write at the end of the file: lines of several programs do not mix.
            descriptor = os.open(self._path, os.O_RDWR | os.O_APPEND | os.O_CLOEXEC)
            try:
                size = os.fstat(descriptor).st_size
                is_cut = size > 0 and os.pread(descriptor, 1, size - 1) != b"\n"  # by a kill or a full disk
                os.write(descriptor, b"\n" * is_cut + line)
            finally:
                os.close(descriptor)

    def _latest_first(self) -> Iterator[Sight]:
        with self._path.open("rb") as stream:
            stream.seek(max(0, os.fstat(stream.fileno()).st_size - _LARGEST))
            lines = stream.read(_LARGEST).splitlines()[1:]  # the first is the key, or was cut
        for line in reversed(lines):
            # A line that a kill cut short is none.
            with suppress(ValueError, TypeError):
                yield Sight(**json.loads(line))


def _same_place(one: Sight, other: Sight) -> bool:
    return (one.dataset, one.basis) == (other.dataset, other.basis)
