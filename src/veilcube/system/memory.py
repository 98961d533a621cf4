"""How much memory this process may still take, and the refusal of what needs more: asked before work begins."""

import os
import resource
from pathlib import Path

from veilcube.errors import CapacityError

CELLS_WORTH_A_CHECK = 2**22
_MEMINFO = Path("/proc/meminfo")
_CONTROL_GROUP = Path("/sys/fs/cgroup")
_OWN_GROUP = Path("/proc/self/cgroup")
_ADDRESS_SPACE = Path("/proc/self/statm")


def available_memory() -> int:
    """Bytes that can be taken without swapping: what is left of the machine, its container, or the process's limit."""
    limits = [_machine_memory(), *_container_memory()]
    allowed = _allowed_addresses()
    return min(limits if allowed is None else [*limits, allowed])


def require_memory(needed: int, task: str, ways_out: str = "", *, beside: int = 0) -> None:
    """Refuse a task that would need more memory, and some ``beside`` for its tools, than can be taken."""
    available = available_memory()
    if needed + beside > available:
        raise CapacityError(
            f"{task} needs {_gibibytes(needed)}, but only {_gibibytes(available)} of memory are available; "
            f"{ways_out or 'use coarser bins, fewer attributes or a larger machine'}"
        )


def require_cells(cells: int, bytes_each: int, task: str, ways_out: str = "") -> None:
    """Refuse to write out ``cells`` cells, of one attribute or of a cube, where memory does not allow it.

    Few cells fit everywhere, and are not worth the time of looking.
    """
    if cells > CELLS_WORTH_A_CHECK:
        require_memory(cells * bytes_each, f"{task} over {cells:,} cells", ways_out)


def format_bytes(size: int) -> str:
    """Write a number of bytes for people, in decimal units.

    >>> format_bytes(800_000_000)
    '800 MB'
    """
    for power, unit in ((15, "PB"), (12, "TB"), (9, "GB"), (6, "MB"), (3, "kB")):
        if size >= 10**power:
            return f"{size / 10**power:,.3g} {unit}" if size < 10 ** (power + 3) else f"{size // 10**power:,} {unit}"
    return f"{size} bytes"


def _machine_memory() -> int:
    try:
        for line in _MEMINFO.read_text().splitlines():
            if line.startswith("MemAvailable:"):
                return int(line.split()[1]) * 1024
    except (OSError, ValueError):
        pass
    # Not Linux, or a very old one: half of all memory is a guess that is seldom too high.
    return os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE") // 2


def _container_memory() -> list[int]:
    """What the control groups leave that set a limit: the process's own group and all around it."""
    left = []
    for group in _groups():
        limit = _number_in(group / "memory.max", group / "memory.limit_in_bytes")
        used = _number_in(group / "memory.current", group / "memory.usage_in_bytes")
        if limit is not None and used is not None:  # no limit is the word "max", or more than there is
            left.append(max(0, limit - used + _reclaimable_bytes(group)))
    return left


def _groups() -> list[Path]:
    """Return the mounted group, inside a container its own, and those down to the process's (versions 2 and 1)."""
    found = [_CONTROL_GROUP, _CONTROL_GROUP / "memory"]
    try:
        lines = _OWN_GROUP.read_text().splitlines()
    except OSError:
        return found
    for line in lines:
        _, controllers, path = [*line.split(":", 2), "", ""][:3]
        names = [name for name in path.split("/") if name not in ("", ".", "..")]
        if controllers in ("", "memory"):
            top = _CONTROL_GROUP / controllers
            found += [top.joinpath(*names[:depth]) for depth in range(1, len(names) + 1)]
    return found


def _number_in(*files: Path) -> int | None:
    for file in files:
        try:
            return int(file.read_text())
        except (OSError, ValueError):
            continue
    return None


def _reclaimable_bytes(group: Path) -> int:
    """Files that were read lately count as used, but the kernel drops them when memory is asked for."""
    try:
        facts = dict(line.split() for line in (group / "memory.stat").read_text().splitlines())
        return int(facts.get("total_inactive_file", facts.get("inactive_file", 0)))
    except (OSError, ValueError):
        return 0


def _allowed_addresses() -> int | None:
    """What a limit on the process's address space (``ulimit -v``) leaves, if there is one."""
    limit, _ = resource.getrlimit(resource.RLIMIT_AS)
    if limit == resource.RLIM_INFINITY:
        return None
    try:
        used = int(_ADDRESS_SPACE.read_text().split()[0]) * resource.getpagesize()
    except (OSError, ValueError, IndexError):
        used = 0
    return max(0, limit - used)


def _gibibytes(size: int) -> str:
    return f"{size / 2**30:,.1f} GiB"
