from .block_levels import BlockLevels as BlockLevels
from .halving import SIDES as SIDES, AxisCodes as AxisCodes, HalvingTree as HalvingTree, halving_depth as halving_depth
from .nodes import NodeCounts as NodeCounts, read_nodes as read_nodes
