from .cells_and_regions import (
    LARGEST_OUTLIER as LARGEST_OUTLIER,
    AdaptiveEstimate as AdaptiveEstimate,
    blocks_of as blocks_of,
    is_adaptive as is_adaptive,
    widening_of as widening_of,
)
from .observed import Observed as Observed
from .shrunken import Shrunken as Shrunken
