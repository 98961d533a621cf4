"""The adaptive mechanism: every cell, then the counts of regions that the noisy cells suggest.

Claim: one unit changes the vector of cells by at most d in L1, and so the vector of the counts of disjoint regions.
Noise of scale d / (ε w) on the cells costs ε w and noise of scale d / (ε (1 - w)) on the regions the rest. Which
regions there are depends on the noisy cells only: docs/proofs/adaptive.md, Theorem 1. Gaussian noise of variance
D / (2 ρ w) and D / (2 ρ (1 - w)), with D the squared L2 sensitivity, shares out ρ alike: Theorem 2.
"""

import warnings

import numpy as np
from numpy.typing import NDArray

from veilcube.curator.cube import Cube
from veilcube.curator.ledger import Receipt
from veilcube.curator.mechanisms.base import SAMPLERS, MechanismFor, NoiseSampler, claim_for, redeem_for
from veilcube.operators import Blocks, IdentityOperator, RegionCounts
from veilcube.partitions import grow_regions, kd_regions, smooth, smoothed_difference_stddev
from veilcube.planner import AdaptiveDesign, Plan
from veilcube.privacy import PrivacyStatement
from veilcube.record import NoisyMeasurement
from veilcube.schema import Ordinal, Schema

# Noise that rounds to none at all still needs a scale to compare cells by; whole numbers are further apart than this.
LEAST_STDDEV = 1e-6
PROOFS = {"laplace": "docs/proofs/adaptive.md#theorem-1", "gaussian": "docs/proofs/adaptive.md#theorem-2"}
# Measured on tables of 2**23 cells: 3.0, 3.2 and 6.0; where every cell becomes a region, two more.
WORDS_PER_CELL = {"blocks": 4, "grow": 6, "kd": 9}


class AdaptiveMechanism(MechanismFor[AdaptiveDesign]):
    """Measures the cells, chooses regions from what it published, and measures those."""

    design = AdaptiveDesign
    planned_by = "Adaptive()"

    def claim(self, plan: Plan) -> PrivacyStatement:
        """Return the promise: the plan's epsilon, by two measurements of which the second follows from the first."""
        return claim_for(plan, PROOFS)

    def words_to_measure(self, plan: Plan) -> int:
        """Return a multiple of the cells: noisy cells, smoothed ones, labels, and what a search for regions holds."""
        return WORDS_PER_CELL[self.design_of(plan).partition] * plan.schema.cells

    def measure(
        self, cube: Cube, plan: Plan, receipt: Receipt, draw_noise: NoiseSampler | None = None
    ) -> tuple[NoisyMeasurement, ...]:
        """Return both measurements; the charge is redeemed before the first random bit."""
        redeem_for(receipt, self.claim(plan))
        design, draw = self.design_of(plan), draw_noise or SAMPLERS[plan.family]
        of_cells, of_regions = design.laws(plan)
        every_cell = IdentityOperator(plan.schema.shape, plan.schema.names)
        noisy = draw(of_cells.parameter, every_cell.measurement_shape)
        noisy += every_cell.apply(cube.exact_counts)
        cells = NoisyMeasurement(every_cell, noisy, of_cells)
        # From here on the cells are only read as they are published.
        regions = RegionCounts.of(_chosen_regions(design, cells.values, of_cells.stddev, plan.schema))
        totals = draw(of_regions.parameter, regions.measurement_shape)
        totals += regions.apply(cube.exact_counts)
        return cells, NoisyMeasurement(regions, totals, of_regions)


def _chosen_regions(
    design: AdaptiveDesign, noisy: NDArray[np.int64], stddev: float, schema: Schema
) -> NDArray[np.int64]:
    """Return the regions that a design makes of noisy cells, as labels."""
    stddev = max(stddev, LEAST_STDDEV)
    if design.partition == "grow":
        # Names, and cells of missing or stray values, stand beside others by chance: they are nobody's neighbours.
        ordered = [attribute.regular_size if isinstance(attribute, Ordinal) else 1 for attribute in schema]
        dimensions = sum(size > 1 for size in ordered)
        apart = design.threshold * smoothed_difference_stddev(design.passes, max(dimensions, 1), stddev)
        labels = grow_regions(smooth(noisy, design.passes, ordered=ordered), apart, ordered=ordered)
    elif design.partition == "kd":
        labels = kd_regions(noisy, stddev)
    else:
        return Blocks(noisy.shape, design.parts).labels
    if noisy.size > 1 and labels.max() + 1 == noisy.size:
        warnings.warn(
            "every cell became a region of its own, so the second step measures the cells again; raise the threshold, "
            "or use another strategy where no attribute has an order to grow along",
            stacklevel=4,
        )
    return labels
