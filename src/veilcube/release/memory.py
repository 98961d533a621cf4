"""How much memory this process may still take."""

import os
from pathlib import Path

_MEMINFO = Path("/proc/meminfo")
_CONTROL_GROUP = Path("/sys/fs/cgroup")


def available_memory() -> int:
    """Bytes that can be taken without swapping: what the machine has left, or its container if that has less."""
    machine, container = _machine_memory(), _container_memory()
    return machine if container is None else min(machine, container)


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


def _container_memory() -> int | None:
    """What the control group leaves (version 2, as in a container), if it sets a limit."""
    try:
        limit = int((_CONTROL_GROUP / "memory.max").read_text())
        used = int((_CONTROL_GROUP / "memory.current").read_text())
    except (OSError, ValueError):  # no control group, or its limit is the word "max"
        return None
    return max(0, limit - used + _reclaimable_bytes())


def _reclaimable_bytes() -> int:
    """Files that were read lately count as used, but the kernel drops them when memory is asked for."""
    try:
        facts = dict(line.split() for line in (_CONTROL_GROUP / "memory.stat").read_text().splitlines())
        return int(facts.get("inactive_file", 0))
    except (OSError, ValueError):
        return 0
