from .axis import (
    AxisMoments as AxisMoments,
    AxisOperator as AxisOperator,
    AxisReader as AxisReader,
    FlatAxis as FlatAxis,
    RangeReader as RangeReader,
    range_steps as range_steps,
    read_flat_axis as read_flat_axis,
    read_size as read_size,
)
from .block_sums import (
    LARGEST_GROWTH as LARGEST_GROWTH,
    BlockSums as BlockSums,
    group_cells as group_cells,
    group_of as group_of,
)
from .exchange import ColumnPair as ColumnPair, farthest as farthest, largest_exchange as largest_exchange
from .inside import InsideAxis as InsideAxis, Way as Way, along_axis as along_axis, in_tiles as in_tiles
from .moments import (
    AnswerMoments as AnswerMoments,
    BoundedMoments as BoundedMoments,
    LinearAnswers as LinearAnswers,
    Moments as Moments,
    WeighsNoise as WeighsNoise,
    union_bound as union_bound,
)
from .protocol import (
    NeighbourName as NeighbourName,
    Operator as Operator,
    OperatorDefaults as OperatorDefaults,
    OperatorReader as OperatorReader,
    other_tables as other_tables,
    unknown_kind as unknown_kind,
)
from .rows import queries_of_one_term as queries_of_one_term, queries_of_products as queries_of_products
from .squares import (
    ColumnProducts as ColumnProducts,
    farthest_products as farthest_products,
    largest_squared_exchange as largest_squared_exchange,
    products_of_columns as products_of_columns,
)
