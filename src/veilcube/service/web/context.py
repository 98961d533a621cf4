"""What a running service holds, and how pages get at it."""

from dataclasses import dataclass, field
from datetime import datetime
from typing import Annotated

from fastapi import Depends, Request

from veilcube.curator import Ledger
from veilcube.service.access import Caller, Keys, Limits, Sessions
from veilcube.service.base import Settings
from veilcube.service.jobs import Jobs, Keeper
from veilcube.service.public import Shelf
from veilcube.service.store import Audit, Database
from veilcube.service.tables import Datasets, Questions, Tables

_WRONG_KEYS_PER_SECOND, _WRONG_KEYS_AT_ONCE = 0.2, 10


@dataclass(frozen=True, eq=False)
class Service:
    """The rooms of one service, opened together."""

    settings: Settings
    database: Database
    audit: Audit = field(init=False)
    keys: Keys = field(init=False)
    sessions: Sessions = field(init=False)
    limits: Limits = field(init=False)
    wrong_keys: Limits = field(init=False)
    shelf: Shelf = field(init=False)
    ledger: Ledger = field(init=False)
    datasets: Datasets = field(init=False)
    tables: Tables = field(init=False)
    questions: Questions = field(init=False)
    jobs: Jobs = field(init=False)
    keeper: Keeper = field(init=False)

    def __post_init__(self) -> None:
        settings, database, ledger = self.settings, self.database, Ledger(self.settings.ledger_url)
        rooms: dict[str, object] = {
            "audit": Audit(database),
            "keys": Keys(database),
            "sessions": Sessions(database, settings.session_seconds),
            "limits": Limits(settings.requests_per_second, settings.burst),
            "shelf": Shelf(settings.below("releases")),
            "ledger": ledger,
            "datasets": Datasets(database),
            "tables": Tables(settings),
            "questions": Questions(database),
            "jobs": Jobs(database),
            "keeper": Keeper(settings, database, ledger),
            "wrong_keys": Limits(_WRONG_KEYS_PER_SECOND, _WRONG_KEYS_AT_ONCE),
        }
        for name, room in rooms.items():
            object.__setattr__(self, name, room)

    @classmethod
    def open(cls, settings: Settings) -> "Service":
        """Open the folder of a service, made if there is none."""
        settings.make_folders()
        return cls(settings, Database(settings.database))

    def now(self) -> datetime:
        """Return this moment by the clock of the service."""
        return self.settings.now()

    def note(self, caller: Caller, action: str, outcome: str = "done", **what: object) -> None:
        """Add to the log what somebody did."""
        self.audit.note(self.now(), caller.name, str(caller.role), action, {"key": caller.key, **what}, outcome)

    def close(self) -> None:
        """Let go of everything."""
        self.keeper.stop()
        self.database.close()


def _service(request: Request) -> Service:
    found: Service = request.app.state.service
    return found


TheService = Annotated[Service, Depends(_service)]
