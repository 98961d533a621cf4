"""Questions and answers: predicates, SQL, workloads, and estimates with their intervals."""

from veilcube.query.answer import Answer, Answers
from veilcube.query.linear import LinearQueries
from veilcube.query.predicate import Query, read_condition, read_query
from veilcube.query.sql import SqlQuery, read_sql
from veilcube.query.workload import Workload, grouped_regions

__all__ = [
    "Answer",
    "Answers",
    "LinearQueries",
    "Query",
    "SqlQuery",
    "Workload",
    "grouped_regions",
    "read_condition",
    "read_query",
    "read_sql",
]
