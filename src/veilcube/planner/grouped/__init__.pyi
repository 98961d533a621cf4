from .choosing import (
    FirstLook as FirstLook,
    are_cells_full as are_cells_full,
    choose_tables as choose_tables,
    looks_at_rows as looks_at_rows,
)
from .design import GroupedDesign as GroupedDesign
from .strategy import GroupedTables as GroupedTables
