from .choosing import choose as choose
from .comparison import Candidate as Candidate
from .design import (
    FAMILIES as FAMILIES,
    Design as Design,
    Family as Family,
    GaussianSpending as GaussianSpending,
    Identity as Identity,
    LaplaceSpending as LaplaceSpending,
    LinearDesign as LinearDesign,
    MeasuredOnce as MeasuredOnce,
    Spending as Spending,
    Strategy as Strategy,
)
from .fitting import LARGEST_CUBE_COUNTED as LARGEST_CUBE_COUNTED, has_room_for_cube as has_room_for_cube
from .grouped import (
    FirstLook as FirstLook,
    GroupedDesign as GroupedDesign,
    GroupedTables as GroupedTables,
    are_cells_full as are_cells_full,
    choose_tables as choose_tables,
)
from .keeping import Comparison as Comparison, compare_with as compare_with
from .marginals import Marginals as Marginals
from .naming import (
    OPTIONS as OPTIONS,
    StrategyLike as StrategyLike,
    named_strategy as named_strategy,
    read_strategy_file as read_strategy_file,
)
from .partition import Adaptive as Adaptive, AdaptiveDesign as AdaptiveDesign, KdTree as KdTree
from .planned import Plan as Plan
from .planning import DEFAULT_EPSILON as DEFAULT_EPSILON, make_plan as make_plan, plan as plan
from .quantiles import (
    QuantileChoice as QuantileChoice,
    QuantileMethod as QuantileMethod,
    QuantilePlan as QuantilePlan,
    QuantileWay as QuantileWay,
    plan_by_total as plan_by_total,
    plan_quantiles as plan_quantiles,
    quantile_widths as quantile_widths,
    read_method as read_method,
)
from .staged import StagedDesign as StagedDesign, has_like_neighbours as has_like_neighbours
from .tree import Tree as Tree
from .usefulness import MEANINGS as MEANINGS, Usefulness as Usefulness, usefulness as usefulness
from .wavelet import Wavelet as Wavelet
