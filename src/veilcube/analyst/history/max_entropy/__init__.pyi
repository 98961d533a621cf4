from .fitting import MaxEntropy as MaxEntropy
from .model import Convergence as Convergence, MaxEntropyModel as MaxEntropyModel
from .quality import Quality as Quality, judge_rows as judge_rows
from .tables import (
    TableGroup as TableGroup,
    make_group as make_group,
    query_supports as query_supports,
    table_cells as table_cells,
)
