"""Differentially private releases that answer count queries with intervals.

>>> import veilcube as vc
>>> schema = vc.Schema([vc.Ordinal("age", 17, 90), vc.Nominal("sex", ["Female", "Male"])])
>>> vc.plan(schema, epsilon=0.5, strategy="identity").expected_error < 30
True
"""

from veilcube import system  # noqa: F401 - first, because it minds interruptions while all else is loaded
from veilcube.analyst import DateAnswer, Release
from veilcube.analyst import open_release as open
from veilcube.analyst.history import KernelPCA, MaxEntropy
from veilcube.analyst.observations import posterior
from veilcube.analyst.parity import walsh_hadamard
from veilcube.analyst.refine import refine, refinement_privacy
from veilcube.curator.counting import count
from veilcube.curator.cube import Cube
from veilcube.curator.ledger import Ledger
from veilcube.errors import VeilcubeError
from veilcube.planner import Adaptive, Identity, KdTree, Marginals, Plan, Tree, Wavelet, plan
from veilcube.planner.usefulness import usefulness
from veilcube.privacy import PrivacyStatement
from veilcube.privacy.rank_mechanisms import rank_distribution
from veilcube.query import Answer, Answers, Workload
from veilcube.query.distributive import DistributiveQuery
from veilcube.regions import grow_regions, smooth
from veilcube.release import History
from veilcube.schema import Nominal, Ordinal, Schema
from veilcube.session import protect, release

__all__ = [
    "Adaptive",
    "Answer",
    "Answers",
    "Cube",
    "DateAnswer",
    "DistributiveQuery",
    "History",
    "Identity",
    "KdTree",
    "KernelPCA",
    "Ledger",
    "Marginals",
    "MaxEntropy",
    "Nominal",
    "Ordinal",
    "Plan",
    "PrivacyStatement",
    "Release",
    "Schema",
    "Tree",
    "VeilcubeError",
    "Wavelet",
    "Workload",
    "count",
    "grow_regions",
    "open",
    "plan",
    "posterior",
    "protect",
    "rank_distribution",
    "refine",
    "refinement_privacy",
    "release",
    "smooth",
    "usefulness",
    "walsh_hadamard",
]
