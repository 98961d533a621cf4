"""Who is asking: a name, a role and the key behind them."""

from dataclasses import dataclass
from enum import StrEnum

from veilcube.service.access.sessions import Session


class Role(StrEnum):
    """What somebody is to the service."""

    CURATOR = "curator"
    ANALYST = "analyst"
    AUDITOR = "auditor"


@dataclass(frozen=True)
class Caller:
    """Who is asking; ``session`` if they do so in a browser."""

    key: str
    name: str
    role: Role
    session: Session | None = None

    @property
    def sees_everything(self) -> bool:
        """Whether they may look at everybody's affairs: curators and auditors."""
        return self.role is not Role.ANALYST

    @property
    def is_curator(self) -> bool:
        """Whether they hold the tables."""
        return self.role is Role.CURATOR

    def to_dict(self) -> dict[str, object]:
        """Return plain data for JSON."""
        return {"name": self.name, "role": str(self.role), "key": self.key}
