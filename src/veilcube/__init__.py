"""Differentially private releases that answer count queries with intervals.

>>> import veilcube as vc
>>> schema = vc.Schema([vc.Ordinal("age", 17, 90), vc.Nominal("sex", ["Female", "Male"])])
>>> vc.plan(schema, epsilon=0.5).strategy.name
'identity'
"""

from veilcube.analyst import DateAnswer, Release
from veilcube.analyst import open_release as open
from veilcube.curator.counting import count
from veilcube.curator.cube import Cube
from veilcube.curator.ledger import Ledger
from veilcube.errors import VeilcubeError
from veilcube.planner import Identity, Plan, plan
from veilcube.privacy import PrivacyStatement
from veilcube.query import Answer, Answers, Workload
from veilcube.schema import Nominal, Ordinal, Schema
from veilcube.session import release

__all__ = [
    "Answer",
    "Answers",
    "Cube",
    "DateAnswer",
    "Identity",
    "Ledger",
    "Nominal",
    "Ordinal",
    "Plan",
    "PrivacyStatement",
    "Release",
    "Schema",
    "VeilcubeError",
    "Workload",
    "count",
    "open",
    "plan",
    "release",
]
