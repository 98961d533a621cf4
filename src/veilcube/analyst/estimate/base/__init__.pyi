from .adjusted import AdjustedEstimate as AdjustedEstimate
from .groups import LinearGroups as LinearGroups, with_intervals as with_intervals
from .portable import (
    PlainData as PlainData,
    Portable as Portable,
    PortableEstimate as PortableEstimate,
    Runs as Runs,
    cells_of_runs as cells_of_runs,
)
from .protocol import (
    CheckedEstimate as CheckedEstimate,
    Estimate as Estimate,
    Estimates as Estimates,
    Estimator as Estimator,
    Finding as Finding,
    Fit as Fit,
    GroupedCounts as GroupedCounts,
)
from .queries import (
    BlockQueries as BlockQueries,
    CellQueries as CellQueries,
    CountQueries as CountQueries,
    Table as Table,
    group_lists as group_lists,
    queries_about_groups as queries_about_groups,
    queries_about_region as queries_about_region,
)
from .ratios import (
    distribution_of_groups as distribution_of_groups,
    mean_of_groups as mean_of_groups,
    quantile_of_groups as quantile_of_groups,
    ratio_of_groups as ratio_of_groups,
)
from .region_noise import RegionNoise as RegionNoise
from .simplex import project_onto_simplex as project_onto_simplex
