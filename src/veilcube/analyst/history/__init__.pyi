from .base import HistorySource as HistorySource, read_history as read_history
from .kernel_pca import Eigenqueries as Eigenqueries, KernelPCA as KernelPCA, KernelPCAModel as KernelPCAModel
from .max_entropy import (
    Convergence as Convergence,
    MaxEntropy as MaxEntropy,
    MaxEntropyModel as MaxEntropyModel,
    Quality as Quality,
    TableGroup as TableGroup,
    judge_rows as judge_rows,
    make_group as make_group,
    query_supports as query_supports,
    table_cells as table_cells,
)
