"""Releases opened from files: plain ones, and refined ones, which are refined again with the facts that they store."""

import logging
from pathlib import Path
from typing import TYPE_CHECKING

from veilcube.analyst.refine import whole
from veilcube.analyst.release import Release
from veilcube.errors import CapacityError, ReleaseFileError, VeilcubeError
from veilcube.record import ReleaseRecord, open_record

if TYPE_CHECKING:
    from veilcube.analyst.refine.release import RefinedRelease

_log = logging.getLogger(__name__)


def open_release(path: str | Path) -> Release:
    """Open a release file; it may come from anybody."""
    record = open_record(path)
    if record.known_facts is None:
        opened = Release(record)
    else:
        opened = refined = _reopened(record, path)
        refined.fact_test.warn()
    _log.info("opened %s: %r", path, opened)
    return opened


def _reopened(record: ReleaseRecord, path: str | Path) -> "RefinedRelease":
    try:
        return whole.reopen_refined(record)
    except CapacityError:
        raise
    except (VeilcubeError, KeyError, TypeError, ValueError, AttributeError, OverflowError) as problem:
        raise ReleaseFileError(
            f"{path} cannot be opened, because its facts cannot be imposed on it ({problem}); ask for a new copy of it"
        ) from problem


# What users call it: veilcube.open.
open = open_release
