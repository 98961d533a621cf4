from .tables import (
    GroupedTablesOperator as GroupedTablesOperator,
    Grouping as Grouping,
    read_grouped_tables as read_grouped_tables,
)
