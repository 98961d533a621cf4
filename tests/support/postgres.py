"""A PostgreSQL server of its own for tests: in a temporary folder, not as root, on a socket that nobody else uses."""

import os
import shutil
import subprocess
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

_NOBODY = 65534
_PLACES = ("/usr/lib/postgresql/*/bin", "/usr/local/bin", "/usr/bin")


def require_postgres() -> Path:
    """Return the folder with the server's programs; installs Debian's package if there is none and we may."""
    for attempt in range(2):
        for pattern in _PLACES:
            for folder in sorted(Path("/").glob(pattern.removeprefix("/")), reverse=True):
                if all((folder / name).exists() for name in ("initdb", "pg_ctl", "postgres")):
                    return folder
        if attempt == 0 and os.geteuid() == 0 and shutil.which("apt-get"):
            subprocess.run(["apt-get", "install", "-y", "-qq", "postgresql"], check=False, capture_output=True)
    pytest.skip("there is no PostgreSQL server here; install one (Debian: apt-get install postgresql)")


@contextmanager
def running_server() -> Iterator[str]:
    """Start a server, and return the URL of its database, which ends with its socket's folder as ``host``."""
    programs, folder = require_postgres(), Path(tempfile.mkdtemp(prefix="vcpg-"))
    as_who = {"user": _NOBODY, "group": _NOBODY} if os.geteuid() == 0 else {}
    if as_who:
        os.chown(folder, _NOBODY, _NOBODY)
    data, environment = folder / "data", {"PATH": os.environ["PATH"], "LC_ALL": "C.UTF-8", "HOME": str(folder)}

    def run(*command: str | Path) -> None:
        subprocess.run(
            [str(part) for part in command],
            check=True, capture_output=True, cwd=folder, env=environment, **as_who,  # type: ignore[call-overload]
        )  # fmt: skip

    try:
        run(programs / "initdb", "-D", data, "-U", "curator", "-A", "trust", "-E", "UTF8", "--no-sync")
        settings = f"-k {folder} -c listen_addresses='' -c fsync=off -c shared_buffers=64MB -c max_connections=40"
        run(programs / "pg_ctl", "-D", data, "-w", "-l", folder / "log", "-o", settings, "start")
        try:
            yield f"postgresql://curator@/postgres?host={folder}"
        finally:
            run(programs / "pg_ctl", "-D", data, "-m", "immediate", "stop")
    finally:
        shutil.rmtree(folder, ignore_errors=True)
