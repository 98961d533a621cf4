from .cells import placing as placing
from .dialect import Declared as Declared, Dialect as Dialect
from .remote import (
    Found as Found,
    RemoteTable as RemoteTable,
    count_remotely as count_remotely,
    declared_columns as declared_columns,
    open_remote as open_remote,
    statement_for as statement_for,
)
from .sources import is_remote as is_remote
from .statement import (
    ABSENT as ABSENT,
    PERSON as PERSON,
    ROWS_IN_ALL as ROWS_IN_ALL,
    Cap as Cap,
    Wanted as Wanted,
    capped as capped,
    cell_name as cell_name,
    grouped_axes as grouped_axes,
    missing_person as missing_person,
)
