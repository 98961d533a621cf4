"""How a service runs: its folder, where it listens, and what it takes at most."""

import os
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path

from veilcube.service.base.errors import ServiceError

LOOPBACK = "127.0.0.1"
_FOLDERS = ("data", "schemas", "plans", "releases", "work")


def _now() -> datetime:
    return datetime.now(UTC)


@dataclass(frozen=True)
class Settings:
    """The settings of one service. ``sources`` are tables outside the folder that the curator declared by name."""

    folder: Path
    host: str = LOOPBACK
    port: int = 8000
    ledger: str | None = None
    sources: Mapping[str, str] = field(default_factory=dict)
    behind_proxy: bool = False
    requests_per_second: float = 100.0
    burst: int = 400
    largest_body: int = 2**20
    most_queries: int = 10_000
    session_seconds: float = 12 * 3600.0
    jobs_at_once: int = 1
    now: Callable[[], datetime] = _now

    @property
    def database(self) -> Path:
        """The file with keys, datasets, jobs and the log."""
        return self.folder / "service.db"

    @property
    def ledger_url(self) -> str:
        """Where budgets are kept."""
        return self.ledger or f"sqlite:///{self.folder / 'ledger.db'}"

    def below(self, kind: str) -> Path:
        """Return the folder of one kind of files."""
        return self.folder / kind

    def make_folders(self) -> None:
        """Make what the folder needs, readable by its owner alone."""
        try:
            self.folder.mkdir(mode=0o700, parents=True, exist_ok=True)
            for kind in _FOLDERS:
                self.below(kind).mkdir(mode=0o700, exist_ok=True)
        except OSError as problem:
            raise ServiceError(
                f"the folder {self.folder} cannot be used ({problem.strerror}); name one that this user may write to"
            ) from problem
        if not os.access(self.folder, os.W_OK | os.X_OK):
            raise ServiceError(f"the folder {self.folder} cannot be written to; let this user write to it")
