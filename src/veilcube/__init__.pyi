from .analyst import (
    DateAnswer as DateAnswer,
    KernelPCA as KernelPCA,
    MaxEntropy as MaxEntropy,
    Release as Release,
    open as open,
    posterior as posterior,
    refine as refine,
    refinement_privacy as refinement_privacy,
    walsh_hadamard as walsh_hadamard,
)
from .auditing import audit as audit
from .curator import Cube as Cube, Ledger as Ledger, check_table as check_table, count as count
from .errors import VeilcubeError as VeilcubeError
from .partitions import grow_regions as grow_regions, smooth as smooth
from .planner import (
    Adaptive as Adaptive,
    GroupedTables as GroupedTables,
    Identity as Identity,
    KdTree as KdTree,
    Marginals as Marginals,
    Plan as Plan,
    Tree as Tree,
    Wavelet as Wavelet,
    plan as plan,
    usefulness as usefulness,
)
from .privacy import PrivacyStatement as PrivacyStatement, rank_distribution as rank_distribution
from .query import (
    Answer as Answer,
    Answers as Answers,
    DistributiveQuery as DistributiveQuery,
    LinearQueries as LinearQueries,
    Workload as Workload,
)
from .record import History as History
from .schema import Nominal as Nominal, Ordinal as Ordinal, Schema as Schema, codebook as codebook
from .service import connect as connect
from .session import measure_cap as measure_cap, protect as protect, release as release
