from .cells_and_regions import (
    CellsAndRegions as CellsAndRegions,
    block_moments as block_moments,
    cells_of as cells_of,
    step_moments as step_moments,
)
from .overlaps import CellLists as CellLists, PairedMoments as PairedMoments
from .regions import (
    Blocks as Blocks,
    RegionCounts as RegionCounts,
    block_parts as block_parts,
    read_regions as read_regions,
)
