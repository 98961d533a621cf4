from .base import (
    AdjustedEstimate as AdjustedEstimate,
    BlockQueries as BlockQueries,
    CellQueries as CellQueries,
    CheckedEstimate as CheckedEstimate,
    CountQueries as CountQueries,
    Estimate as Estimate,
    Estimates as Estimates,
    Estimator as Estimator,
    Finding as Finding,
    Fit as Fit,
    GroupedCounts as GroupedCounts,
    PlainData as PlainData,
    Portable as Portable,
    PortableEstimate as PortableEstimate,
    Runs as Runs,
    distribution_of_groups as distribution_of_groups,
    group_lists as group_lists,
    mean_of_groups as mean_of_groups,
    project_onto_simplex as project_onto_simplex,
    quantile_of_groups as quantile_of_groups,
    queries_about_groups as queries_about_groups,
    queries_about_region as queries_about_region,
    ratio_of_groups as ratio_of_groups,
)
from .best import best_estimator as best_estimator
from .guaranteed import Guarantee as Guarantee
from .linear import (
    LeastSquares as LeastSquares,
    LinearEstimate as LinearEstimate,
    Nonnegative as Nonnegative,
    Thresholded as Thresholded,
)
from .marginals import (
    DEVIATIONS_OF_95_PERCENT as DEVIATIONS_OF_95_PERCENT,
    IMPUTED as IMPUTED,
    MarginalMaxEntropy as MarginalMaxEntropy,
)
from .mixture import LatentClasses as LatentClasses, MixtureEstimate as MixtureEstimate
from .partition import (
    LARGEST_OUTLIER as LARGEST_OUTLIER,
    AdaptiveEstimate as AdaptiveEstimate,
    Observed as Observed,
    Shrunken as Shrunken,
    is_adaptive as is_adaptive,
    widening_of as widening_of,
)
from .polya import Posterior as Posterior
from .registry import ESTIMATORS as ESTIMATORS, choose_estimator as choose_estimator
