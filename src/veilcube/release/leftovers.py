"""What a killed process leaves behind is removed by a later one, which first proves that nobody uses it.

Everything temporary with a name is locked (flock) from its making to its end. The operating system drops the lock with
the process, however that ends. So who gets the lock of a leftover knows that its maker is gone; a process id, which may
be in use again, would prove nothing.
"""

import fcntl
import os
import re
import shutil
import stat
from contextlib import suppress
from pathlib import Path


def hold(descriptor: int, path: Path) -> bool:
    """Lock what was just made; False if it was taken for a leftover in between, so that another must be made."""
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    except OSError:
        pass  # A file system without locks: nobody can take it for a leftover either.
    return _is_at(descriptor, path)


def remove_leftovers(folder: Path, names: re.Pattern[str]) -> None:
    """Remove files and folders with such names that belong to this user and that no process holds any more.

    What cannot be looked at or removed stays: this is housekeeping, and no reason to fail.
    """
    with suppress(OSError):
        for path in folder.iterdir():
            if names.fullmatch(path.name):
                with suppress(OSError):
                    _remove_if_left(path)


def _remove_if_left(path: Path) -> None:
    # Neither a link of somebody else is followed nor a pipe waited for.
    descriptor = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
    try:
        found = os.fstat(descriptor)
        if found.st_uid != os.geteuid() or not (stat.S_ISREG(found.st_mode) or stat.S_ISDIR(found.st_mode)):
            return
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        if not _is_at(descriptor, path):
            return  # Its maker ended well, and gave it its own name or removed it.
        if stat.S_ISDIR(found.st_mode):
            shutil.rmtree(path)
        else:
            path.unlink()
    finally:
        os.close(descriptor)


def _is_at(descriptor: int, path: Path) -> bool:
    """Whether the path still names what was opened."""
    try:
        return os.path.samestat(os.fstat(descriptor), path.lstat())
    except FileNotFoundError:
        return False
