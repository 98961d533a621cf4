"""Files that commands write: a place that is sure before anything is spent.

Commands to try next are shown as the user called veilcube, so that they can be copied as they are.
"""

import errno
import math
import os
import shlex
import shutil
import sys
from pathlib import Path
from tempfile import TemporaryFile
from typing import IO

from veilcube.cli.shared.output import show_size
from veilcube.errors import QueryError, ReleaseFileError
from veilcube.planner import Plan


def program() -> str:
    """Return the words that start veilcube from this folder the way it was started."""
    started = Path(sys.argv[0])
    if started.name != "veilcube":
        return f"{shlex.quote(sys.executable)} -m veilcube.cli"
    found = shutil.which("veilcube")
    if found is not None and Path(found).resolve() == started.resolve():
        return "veilcube"
    here, absolute = Path.cwd(), started.absolute()
    return shlex.quote(f"./{absolute.relative_to(here)}" if absolute.is_relative_to(here) else str(absolute))


_OVERHEAD = 2**20
_CANNOT_RESERVE = {errno.EOPNOTSUPP, errno.EINVAL, errno.ENOSYS}


def require_free(path: Path, *, overwrite: bool) -> None:
    """Refuse a file that exists, unless it may be written over."""
    if path.exists() and not overwrite:
        raise ReleaseFileError(f"{path} exists already; choose another name, or pass --force to write over it")


def require_parquet(path: Path) -> None:
    """Refuse a name that promises another kind of file than Parquet."""
    if path.suffix.lower() not in ("", ".parquet", ".pq"):
        raise QueryError(
            f"rows are written as Parquet, so '{path.name}' would mislead; name the file '{path.stem}.parquet'"
        )


def expected_size(plan: Plan) -> int:
    """Return about how many bytes the release of a plan takes, rather too many than too few.

    Noise of size s compresses to little more than its entropy, log2(2 e s) bits; counts of everyday tables add less
    than a byte to a cell.
    """
    measurements = math.prod(plan.operator.measurement_shape)
    return _OVERHEAD + math.ceil(measurements * (1 + math.log2(1 + plan.noise.size) / 6))


def reserve_room(path: Path, size: int, *, overwrite: bool) -> IO[bytes]:
    """Refuse a place that cannot take the release; return a nameless file that holds ``size`` bytes there until closed.

    Having no name, it leaves nothing behind, however the program ends.
    """
    target = Path(os.path.realpath(path))
    if target.is_dir():
        raise ReleaseFileError(f"{path} is a folder; name a file in it, such as {path / 'table.veil'}")
    require_free(path, overwrite=overwrite)
    try:
        return _reserve(target.parent, size)
    except OSError as problem:
        reason = problem.strerror or type(problem).__name__
        raise ReleaseFileError(
            f"a release of about {show_size(size)} cannot be saved as {path} ({reason}), so nothing was charged; "
            "choose another place"
        ) from problem


def _reserve(folder: Path, size: int) -> IO[bytes]:
    room = TemporaryFile(dir=folder)  # noqa: SIM115 - the caller closes it
    try:
        os.posix_fallocate(room.fileno(), 0, size)
    except OSError as problem:
        if problem.errno not in _CANNOT_RESERVE:
            room.close()
            raise
    return room
