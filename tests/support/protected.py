"""Protected tables for tests: with a real ledger, or with a desk that records what would be published."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from veilcube.curator.cube import Cube
from veilcube.curator.ledger import Ledger, PartOf, StoredAnswer
from veilcube.curator.mechanisms import Samplers
from veilcube.curator.protected.desk import Desk
from veilcube.curator.protected.rows import PrivateRows
from veilcube.curator.protected.table import ProtectedTable
from veilcube.laws import Noise
from veilcube.privacy import Neighbours, PrivacyStatement
from veilcube.record.questions.question import Question


@dataclass(frozen=True)
class Published:
    """What one measurement would publish if its noise were 0: the exact integers, and the law of the noise."""

    exact: tuple[int, ...]
    noise: Noise | None
    statement: PrivacyStatement

    @property
    def scales(self) -> tuple[Fraction, ...]:
        """The scale of Laplace noise, if that is what it has."""
        return (self.noise.parameter,) if self.noise is not None and self.noise.family == "laplace" else ()


@dataclass(frozen=True, eq=False)
class RecordingDesk(Desk):
    """Charges nothing and keeps nothing; notes every measurement."""

    published: list[Published] = field(default_factory=list)

    def recall(self, *_: object) -> None:
        return None

    def measure(
        self,
        question: Question,
        statement: PrivacyStatement,
        draw: Callable[[], Sequence[int]],
        noise: Noise | None = None,
        within: Sequence[PartOf] = (),
    ) -> StoredAnswer:
        values = tuple(draw())
        self.published.append(Published(values, noise, statement))
        return StoredAnswer(1, "d", 1, "s", "k", question.data, values, noise, statement, None, "now")


def no_noise(scale: Fraction, shape: tuple[int, ...]) -> NDArray[np.int64]:
    return np.zeros(shape, dtype=np.int64)


def recorded_table(cube: Cube, neighbours: str) -> tuple[ProtectedTable, list[Published]]:
    """Return a table whose measurements are noted without noise, and the list that they go to."""
    rows = PrivateRows(cube, cube.schema, cube.unit)
    desk = RecordingDesk(
        rows, Ledger(Path("unused.db")), "d", Neighbours(neighbours), None, Samplers(no_noise, no_noise)
    )
    return ProtectedTable.whole(desk), desk.published
