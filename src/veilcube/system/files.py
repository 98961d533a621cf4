"""Files that are saved whole or not at all, read with a limit, and cleaned up after processes that were killed.

New bytes take the place of old ones only once they are on the disk. Everything temporary with a name is locked (flock)
from its making to its end, and the operating system drops the lock with the process, however that ends. So who gets the
lock of a leftover knows that its maker is gone; a process id, which may be in use again, would prove nothing.
"""

import errno
import fcntl
import itertools
import os
import re
import shutil
import stat
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import BinaryIO

from veilcube.errors import ReleaseFileError

LARGEST_TEXT = 2**28


def read_text_file(path: Path, encoding: str = "utf-8") -> str:
    """Return the text of a file; what is larger than any such text, as a device without end, raises an OSError."""
    with path.open("rb") as stream:
        content = stream.read(LARGEST_TEXT + 1)
    if len(content) > LARGEST_TEXT:
        raise OSError(errno.EFBIG, os.strerror(errno.EFBIG))
    return content.decode(encoding).replace("\r\n", "\n").replace("\r", "\n")


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


_NO_ROOM = {errno.ENOSPC, errno.EDQUOT, errno.EFBIG}
_NOT_ALLOWED = {errno.EACCES, errno.EPERM, errno.EROFS}
_NOT_A_FOLDER = {errno.ENOENT, errno.ENOTDIR}
_TEMPORARY = re.compile(r"\.veil-\d+-\d+\.tmp")


@contextmanager
def atomic_file(path: Path) -> Iterator[BinaryIO]:
    """Give a stream whose bytes become the file ``path`` when the block ends well, and vanish when it does not.

    The bytes go to a temporary file in the same folder, are flushed to the disk, and are then renamed over ``path``
    (an older file keeps its permissions). On any failure the temporary file is removed and the older file stays as it
    was; a failing disk or folder is reported as ``ReleaseFileError``. What a process that was killed left in the folder
    is removed by the next one that saves there.
    """
    try:
        target, older = _find_target(path)
        descriptor, temporary = _create_beside(target)
        remove_leftovers(target.parent, _TEMPORARY)
        try:
            with os.fdopen(descriptor, "w+b") as stream:
                yield stream
                stream.flush()
                if older is not None:
                    os.fchmod(descriptor, stat.S_IMODE(older.st_mode))
                os.fsync(descriptor)
                # Before the stream, and with it the lock, is closed: until then nobody takes it for a leftover.
                temporary.replace(target)
        except BaseException:  # also KeyboardInterrupt: no half file is left behind
            with suppress(OSError):
                temporary.unlink(missing_ok=True)
            raise
        _flush_folder(target.parent)
    except OSError as error:
        raise ReleaseFileError(_advice(path, error)) from error


def _find_target(path: Path) -> tuple[Path, os.stat_result | None]:
    """Return the file to replace, and what is known of it if it exists."""
    try:
        target = Path(os.path.realpath(path))  # a symbolic link goes on pointing at the file that it names
        found = target.stat()
    except FileNotFoundError:
        return target, None
    except ValueError as error:
        raise ReleaseFileError(f"{str(path)!r} cannot name a file; choose another name") from error
    if not stat.S_ISREG(found.st_mode):
        raise ReleaseFileError(f"{path} is a folder or a device, so no release can be saved there; name a file")
    return target, found


def _create_beside(target: Path) -> tuple[int, Path]:
    """Create an empty file next to ``target``, in the same file system so that the rename is atomic."""
    for attempt in itertools.count():
        # A fixed short name: one built from the target's could be too long although the target's is not.
        temporary = target.with_name(f".veil-{os.getpid()}-{attempt}.tmp")
        with suppress(FileExistsError):
            descriptor = os.open(temporary, os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o666)
            if hold(descriptor, temporary):
                return descriptor, temporary
            os.close(descriptor)
    raise AssertionError("unreachable: itertools.count never ends")


def _flush_folder(folder: Path) -> None:
    """Make the rename itself survive a power cut."""
    descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
    try:
        os.fsync(descriptor)
    except OSError as error:
        if error.errno != errno.EINVAL:  # some network file systems cannot flush a folder, and need not
            raise
    finally:
        os.close(descriptor)


def _advice(path: Path, error: OSError) -> str:
    reason = error.strerror or str(error)
    if error.errno in _NO_ROOM:
        advice = "free some space or save to another disk"
    elif error.errno in _NOT_ALLOWED:
        advice = "save to a folder that you may write to"
    elif error.errno in _NOT_A_FOLDER:
        advice = "create its folder first"
    else:
        advice = "save it elsewhere"
    return f"the release could not be saved as {path} ({reason}), and nothing was changed there; {advice}"
