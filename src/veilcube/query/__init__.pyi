from .aggregates import Asked as Asked
from .answer import (
    Answer as Answer,
    Answers as Answers,
    RankAnswer as RankAnswer,
    RankAnswers as RankAnswers,
    ends_of_cells as ends_of_cells,
    read_confidence as read_confidence,
    require_place as require_place,
    value_of_cell as value_of_cell,
)
from .answering import (
    Answering as Answering,
    AnswersWorkloads as AnswersWorkloads,
    ask_groups as ask_groups,
    held_groups as held_groups,
    read_marginal as read_marginal,
    read_question as read_question,
)
from .cell_numbers import CellNumbers as CellNumbers, cell_numbers as cell_numbers
from .distributive import DistributiveQuery as DistributiveQuery
from .linear import LinearQueries as LinearQueries
from .linear_factors import Factor as Factor
from .predicate import Query as Query, read_cells as read_cells, read_query as read_query
from .sql import (
    SqlQuery as SqlQuery,
    SqlStatement as SqlStatement,
    read_sql as read_sql,
    read_statement as read_statement,
)
from .workload import Workload as Workload, grouped_regions as grouped_regions, weights_of as weights_of
