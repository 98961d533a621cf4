from .components import (
    Axes as Axes,
    block_norms as block_norms,
    part_covariances as part_covariances,
    require_few_tables as require_few_tables,
    table_precisions as table_precisions,
)
from .reading import read_marginals as read_marginals
from .tables import MarginalsOperator as MarginalsOperator
