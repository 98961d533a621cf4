from .answering import (
    Blocks as Blocks,
    answer_all as answer_all,
    export_table as export_table,
    plain_answer as plain_answer,
)
from .files import NamedFiles as NamedFiles
from .planning import PlanWish as PlanWish, plan_facts as plan_facts, planned as planned
from .queries import (
    Amount as Amount,
    QueryText as QueryText,
    WrittenQuery as WrittenQuery,
    read_written as read_written,
)
from .shelf import Shelf as Shelf, release_facts as release_facts
