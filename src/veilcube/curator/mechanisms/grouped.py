"""Grouped tables: every attribute on its own, then tables over several attributes that these counts suggest.

Claim: a row lies in one cell of every table, so one unit changes the tables of the first step, whose multipliers add up
to t, by at most t d in L1, where d is its change of one table; and those of the second, whose multipliers add up to U,
by at most U d. Noise of scale t d / (ε w) on the first costs ε w and noise of scale U d / (ε (1 - w)) on the
second the rest. Which tables and groups the second counts, and how it divides U among them, depends on the first step's
noisy counts only: docs/proofs/grouped-tables.md, Theorem 1. Gaussian noise shares out ρ alike, with squared multipliers
that add up to at most U²: Theorem 2. Where all rows are counted before, their noisy number alone decides between this
and all cells on their own, and either way has what that number left: Theorem 3.
"""

from math import prod

from veilcube.curator.cube import Cube, RowList
from veilcube.curator.ledger import Receipt
from veilcube.curator.mechanisms.base import SAMPLERS, MechanismFor, NoiseSampler, claim_for, redeem_for
from veilcube.laws import Noise
from veilcube.operators import Operator
from veilcube.planner import FirstLook, GroupedDesign, Plan, are_cells_full, choose_tables
from veilcube.privacy import PrivacyStatement
from veilcube.record import NoisyMeasurement

PROOFS = {"laplace": "docs/proofs/grouped-tables.md#theorem-1", "gaussian": "docs/proofs/grouped-tables.md#theorem-2"}


class GroupedTablesMechanism(MechanismFor[GroupedDesign]):
    """Measures every attribute, chooses tables from what it published, and measures those."""

    design = GroupedDesign
    planned_by = "GroupedTables()"

    def claim(self, plan: Plan) -> PrivacyStatement:
        """Return the promise: the plan's, by measurements of which each follows from those before."""
        return claim_for(plan, PROOFS)

    def words_to_measure(self, plan: Plan) -> int:
        """Return the size of the largest tables that may be chosen, with their noise and labels, and of their sums."""
        labels = sum(prod(shape) for part, _ in plan.parts for shape in part.array_shapes.values())
        measured = sum(2 * prod(part.measurement_shape) for part, _ in plan.parts)
        return measured + 2 * labels + 2 * min(plan.schema.cells, 2**24)

    def measure(
        self, cube: Cube | RowList, plan: Plan, receipt: Receipt, draw_noise: NoiseSampler | None = None
    ) -> tuple[NoisyMeasurement, ...]:
        """Return what was measured, step by step; the charge is redeemed before the first random bit."""
        redeem_for(receipt, self.claim(plan))
        design, draw = self.design_of(plan), draw_noise or SAMPLERS[plan.family]

        def measured(operator: Operator, law: Noise) -> NoisyMeasurement:
            values = draw(law.parameter, operator.measurement_shape)
            values += cube.measured_by(operator)
            return NoisyMeasurement(operator, values, law)

        before: tuple[NoisyMeasurement, ...] = ()
        if design.rows_share:
            of_rows, of_cells = design.laws_of_cells(plan)
            before = (measured(design.rows, of_rows),)
            # From here on all rows are only read as they are published; and so are the attributes, further down.
            if are_cells_full(plan.schema, float(before[0].values.sum()), of_cells.variance):
                return *before, measured(design.cells, of_cells)
        of_attributes, of_tables = design.laws(plan)
        first = measured(design.first, of_attributes)
        look = FirstLook.of(design.first, first.values)
        chosen = choose_tables(plan.schema, look, of_tables.stddev, plan.family)
        return *before, first, measured(chosen, of_tables)
