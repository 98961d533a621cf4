"""Regions of cells, found in NOISY cells: both sides of the wall may compute them from what is published."""

from veilcube.regions.blocks import block_regions
from veilcube.regions.grow import grow_regions
from veilcube.regions.kd import kd_regions
from veilcube.regions.smooth import smooth, smoothed_difference_stddev

__all__ = ["block_regions", "grow_regions", "kd_regions", "smooth", "smoothed_difference_stddev"]
