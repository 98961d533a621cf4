from .growing import block_regions as block_regions, grow_regions as grow_regions
from .kd import kd_regions as kd_regions
from .smoothing import smooth as smooth, smoothed_difference_stddev as smoothed_difference_stddev
