from .csv_files import draft_names as draft_names, is_csv as is_csv
from .engine import Engine as Engine
from .loops import (
    ALL_PLACED as ALL_PLACED,
    MISSING as MISSING,
    OUTSIDE as OUTSIDE,
    UNREADABLE as UNREADABLE,
    UNREADABLE_NUMBER as UNREADABLE_NUMBER,
    add_to_counts as add_to_counts,
    add_to_tables as add_to_tables,
    place_in_bins as place_in_bins,
    place_integers as place_integers,
    place_whole_floats as place_whole_floats,
)
from .parquet_files import is_parquet as is_parquet
from .paths import find_files as find_files
from .sources import open_table as open_table
from .table import (
    LOST_DIGITS as LOST_DIGITS,
    Column as Column,
    Part as Part,
    Table as Table,
    always as always,
    require_columns as require_columns,
    shielded as shielded,
)
