"""The tally: exact tables over few attributes, counted without the cube. PRIVATE, as the cube is."""

from collections.abc import Sequence
from math import prod

import numpy as np
from numpy.typing import NDArray

from veilcube.curator.cube import require_table
from veilcube.errors import PlanError
from veilcube.operators import Operator
from veilcube.operators.components import Axes
from veilcube.operators.marginals import MarginalsOperator
from veilcube.privacy import PrivacyUnit
from veilcube.privacy.secrecy import Private
from veilcube.schema import Schema


class Tally(Private):
    """Exact counts of the cells of some tables, one table after the other; silent about what it holds."""

    def __init__(self, schema: Schema, tables: Sequence[Axes], counts: NDArray[np.int64], unit: PrivacyUnit) -> None:
        counts.setflags(write=False)
        self._schema, self._tables, self._counts, self._unit = schema, tuple(tables), counts, unit
        require_table(self.exact_rows)

    @property
    def schema(self) -> Schema:
        """The public description of the table that was counted."""
        return self._schema

    @property
    def unit(self) -> PrivacyUnit:
        """Whose presence a release of these tables hides."""
        return self._unit

    @property
    def exact_rows(self) -> float:
        """How many rows were counted: private."""
        cells = prod(self._schema.shape[axis] for axis in self._tables[0])
        return float(self._counts[:cells].sum())

    def measured_by(self, operator: Operator) -> NDArray[np.int64]:
        """Return the exact measurements of the marginals that were counted; only mechanisms may ask."""
        if not isinstance(operator, MarginalsOperator) or operator.tables != self._tables:
            raise PlanError("other tables were counted than the plan measures; count for this plan")
        measured = self._counts.copy()
        for times, part in zip(operator.multipliers, operator.parts(measured), strict=True):
            part[...] *= times
        return measured

    def __repr__(self) -> str:
        return f"Tally({len(self._tables)} tables over {len(self._schema)} attributes, exact counts not shown)"
