"""Run a piece of a test in a child process that has less than this one: fewer rights, less disk, or less time."""

import os
import resource
import signal
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from veilcube.errors import VeilcubeError

_NOBODY = 65534


def message_without_privileges(action: Callable[[], object]) -> str:
    """The message of the error that ``action`` raises for a user who is not root; empty if there is none."""

    def drop_privileges() -> None:
        if os.geteuid() == 0:
            os.setgid(_NOBODY)
            os.setuid(_NOBODY)

    return _message(drop_privileges, action)


def message_with_little_disk(action: Callable[[], object], *, file_bytes: int) -> str:
    """The message of the error that ``action`` raises where no file can grow beyond ``file_bytes``."""

    def limit_files() -> None:
        signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
        resource.setrlimit(resource.RLIMIT_FSIZE, (file_bytes, file_bytes))

    return _message(limit_files, action)


@contextmanager
def killed_child(action: Callable[[], object]) -> Iterator[int]:
    """Run ``action`` in a process, whose id is given, until the block ends; it is then killed without warning."""
    child = _fork(action)
    try:
        yield child
    finally:
        os.kill(child, signal.SIGKILL)
        os.waitpid(child, 0)


def _message(prepare: Callable[[], None], action: Callable[[], object]) -> str:
    reader, writer = os.pipe()

    def report() -> None:
        prepare()
        try:
            action()
        except VeilcubeError as error:
            os.write(writer, str(error).encode())

    child = _fork(report)
    os.close(writer)
    with os.fdopen(reader) as stream:
        message = stream.read()
    _, status = os.waitpid(child, 0)
    assert status == 0, "the child process failed in another way"
    return message


def _fork(action: Callable[[], object]) -> int:
    # Forked rather than started afresh, because importing everything again takes longer than the tests themselves.
    child = os.fork()
    if child == 0:
        status = 1
        try:
            action()
            status = 0
        finally:
            os._exit(status)
    return child
