from .axis import (
    TreeAxis as TreeAxis,
    node_multipliers as node_multipliers,
    nodes_of as nodes_of,
    read_tree_axis as read_tree_axis,
)
from .loops import Nodes as Nodes
from .shape import (
    TreeShape as TreeShape,
    build_shape as build_shape,
    hierarchy_levels as hierarchy_levels,
    levels_of_fanouts as levels_of_fanouts,
    read_runs as read_runs,
    refines as refines,
    split_runs as split_runs,
    tree_fanouts as tree_fanouts,
    tree_levels as tree_levels,
)
from .squares import products_of_nodes as products_of_nodes
from .steps import child_holding as child_holding
