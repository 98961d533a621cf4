"""Text files that people write: read whole, but never without end."""

import errno
import os
from pathlib import Path

LARGEST_TEXT = 2**28


def read_text(path: Path, encoding: str = "utf-8") -> str:
    """Return the text of a file; what is larger than any such text, as a device without end, raises an OSError."""
    with path.open("rb") as stream:
        content = stream.read(LARGEST_TEXT + 1)
    if len(content) > LARGEST_TEXT:
        raise OSError(errno.EFBIG, os.strerror(errno.EFBIG))
    return content.decode(encoding).replace("\r\n", "\n").replace("\r", "\n")
