"""Keys of digests, from the system's entropy, and the files they are kept in. They are no noise: that comes from the
samplers alone.
"""

import os
import threading
from contextlib import suppress
from pathlib import Path

KEY_BYTES = 32


def new_key() -> bytes:
    """Return a key that nobody can guess."""
    return os.urandom(KEY_BYTES)


def read_key_file(path: Path) -> bytes | None:
    """Return the key in the first line of a file; None where that is no key. Raises OSError where it cannot be read."""
    with path.open("rb") as stream:
        line = stream.readline(4 * KEY_BYTES)
    with suppress(ValueError):
        key = bytes.fromhex(line.decode("ascii"))
        return key if len(key) == KEY_BYTES else None
    return None


def begin_key_file(path: Path) -> None:
    """Make a file with a new key that its owner alone may read, in one step, so that of several programs all find one.

    It is on disk, and its name in its folder too, when this returns. A file that is there already stays.
    """
    unfinished = path.with_name(f".{os.getpid()}-{threading.get_ident()}{path.suffix}.tmp")
    unfinished.unlink(missing_ok=True)
    descriptor = os.open(unfinished, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600)
    try:
        os.write(descriptor, new_key().hex().encode("ascii") + b"\n")
        os.fsync(descriptor)
        with suppress(FileExistsError):
            os.link(unfinished, path)
    finally:
        os.close(descriptor)
        unfinished.unlink(missing_ok=True)
    sync_folder(path.parent)


def sync_folder(folder: Path) -> None:
    """Bring the names in a folder to disk."""
    descriptor = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
