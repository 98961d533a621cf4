from .base import (
    LARGEST_GROWTH as LARGEST_GROWTH,
    AnswerMoments as AnswerMoments,
    AxisOperator as AxisOperator,
    BlockSums as BlockSums,
    BoundedMoments as BoundedMoments,
    FlatAxis as FlatAxis,
    LinearAnswers as LinearAnswers,
    Moments as Moments,
    NeighbourName as NeighbourName,
    Operator as Operator,
    OperatorDefaults as OperatorDefaults,
    OperatorReader as OperatorReader,
    RangeReader as RangeReader,
    group_cells as group_cells,
    group_of as group_of,
    union_bound as union_bound,
)
from .grouped import (
    GroupedTablesOperator as GroupedTablesOperator,
    Grouping as Grouping,
    read_grouped_tables as read_grouped_tables,
)
from .identity import IdentityOperator as IdentityOperator, read_identity as read_identity
from .marginals import (
    Axes as Axes,
    MarginalsOperator as MarginalsOperator,
    block_norms as block_norms,
    part_covariances as part_covariances,
    read_marginals as read_marginals,
    require_few_tables as require_few_tables,
    table_precisions as table_precisions,
)
from .matched import LARGEST_MATCHED as LARGEST_MATCHED, MOST_ENTRIES as MOST_ENTRIES, MatchedAxis as MatchedAxis
from .partition import (
    Blocks as Blocks,
    CellLists as CellLists,
    CellsAndRegions as CellsAndRegions,
    PairedMoments as PairedMoments,
    RegionCounts as RegionCounts,
    block_moments as block_moments,
    block_parts as block_parts,
    cells_of as cells_of,
    read_regions as read_regions,
    step_moments as step_moments,
)
from .product import (
    ProductOperator as ProductOperator,
    flat_product as flat_product,
    read_axis as read_axis,
    read_product as read_product,
)
from .reading import read_operator as read_operator
from .staged import (
    SIDES as SIDES,
    AxisCodes as AxisCodes,
    BlockLevels as BlockLevels,
    HalvingTree as HalvingTree,
    NodeCounts as NodeCounts,
    halving_depth as halving_depth,
    read_nodes as read_nodes,
)
from .tree import (
    Nodes as Nodes,
    TreeAxis as TreeAxis,
    TreeShape as TreeShape,
    hierarchy_levels as hierarchy_levels,
    levels_of_fanouts as levels_of_fanouts,
    node_multipliers as node_multipliers,
    nodes_of as nodes_of,
    tree_fanouts as tree_fanouts,
    tree_levels as tree_levels,
)
from .wavelet import HaarAxis as HaarAxis, NominalAxis as NominalAxis
