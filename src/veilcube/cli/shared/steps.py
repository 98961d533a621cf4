"""What ``--verbose`` tells: the steps of a command, as the library logs them, on the error stream.

Steps name public facts: schemas, plans, promises, charges, files. Neither a count nor a time is told, since both follow
from the table. Programs that use the library get the same lines from the logger ``veilcube``.
"""

import logging
import sys
from collections.abc import Iterator
from contextlib import contextmanager

from veilcube.cli.shared.output import printable

_logger = logging.getLogger("veilcube")


class _Steps(logging.Handler):
    """Writes each step as one line."""

    def emit(self, record: logging.LogRecord) -> None:
        """Write a step; a stream that is closed is no reason to fail."""
        try:
            sys.stderr.write(f"step: {printable(' '.join(record.getMessage().split()))}\n")
        except (OSError, ValueError):
            self.handleError(record)

    def handleError(self, record: logging.LogRecord) -> None:  # noqa: N802 - the name that logging calls
        """Go on without a word."""


def tell_steps(wanted: bool) -> bool:
    """Tell steps from here on, if that is wanted."""
    if wanted and not any(isinstance(handler, _Steps) for handler in _logger.handlers):
        _logger.addHandler(_Steps(logging.INFO))
        _logger.setLevel(logging.INFO)
    return wanted


@contextmanager
def quiet_unless_asked() -> Iterator[None]:
    """Take back, at the end of a command, what it began to tell."""
    handlers, level = list(_logger.handlers), _logger.level
    try:
        yield
    finally:
        _logger.handlers[:] = handlers
        _logger.setLevel(level)
