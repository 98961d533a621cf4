"""While the ``veilcube`` command loads, an interruption ends it at once and without a word.

Loading takes a second, and nothing that would need cleaning up has happened yet. Other programs that import veilcube
keep their own ways with signals.
"""

import os
import signal
import sys
import threading
from itertools import pairwise
from pathlib import Path
from types import FrameType
from typing import NoReturn

_INTERRUPTED = 130
_MODULE = "veilcube.cli"


def is_command() -> bool:
    """Whether this process was started as the command, by its script or as a module."""
    words = sys.orig_argv
    as_module = ("-m", _MODULE) in pairwise(words) or f"-m{_MODULE}" in words
    return as_module or Path(sys.argv[0] if sys.argv else "").stem == "veilcube"


def _end(_number: int, _frame: FrameType | None) -> NoReturn:
    os._exit(_INTERRUPTED)


def end_quietly_when_interrupted() -> None:
    """Set the handler, in a process that is the command and in its main thread, unless interruptions are ignored."""
    is_main = threading.current_thread() is threading.main_thread()
    if is_main and is_command() and signal.getsignal(signal.SIGINT) is signal.default_int_handler:
        signal.signal(signal.SIGINT, _end)
