from .candidates import (
    LARGEST_CUBE_COUNTED as LARGEST_CUBE_COUNTED,
    fitting_strategy as fitting_strategy,
    named_strategy as named_strategy,
    takes_grouped_tables as takes_grouped_tables,
)
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
from .grouped import (
    FirstLook as FirstLook,
    GroupedDesign as GroupedDesign,
    GroupedTables as GroupedTables,
    are_cells_full as are_cells_full,
    choose_tables as choose_tables,
)
from .marginals import Marginals as Marginals
from .partition import Adaptive as Adaptive, AdaptiveDesign as AdaptiveDesign, KdTree as KdTree
from .planning import (
    DEFAULT_EPSILON as DEFAULT_EPSILON,
    Plan as Plan,
    choose as choose,
    make_plan as make_plan,
    plan as plan,
)
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
