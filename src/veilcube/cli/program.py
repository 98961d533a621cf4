"""How the user called veilcube, so that commands to try next can be copied as they are."""

import shlex
import shutil
import sys
from pathlib import Path


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
