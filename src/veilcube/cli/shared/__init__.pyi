from .files import (
    expected_size as expected_size,
    program as program,
    require_free as require_free,
    require_parquet as require_parquet,
    reserve_room as reserve_room,
)
from .opening import open_release_file as open_release_file
from .options import (
    CommandGroup as CommandGroup,
    Confidence as Confidence,
    Delta as Delta,
    EpsilonOrNone as EpsilonOrNone,
    Force as Force,
    JsonFlag as JsonFlag,
    LedgerUrl as LedgerUrl,
    MaxGroups as MaxGroups,
    MaxRows as MaxRows,
    MeasureCap as MeasureCap,
    MostRows as MostRows,
    NeighboursChoice as NeighboursChoice,
    NeighboursOrNone as NeighboursOrNone,
    Person as Person,
    ReleaseFile as ReleaseFile,
    Rho as Rho,
    SchemaFile as SchemaFile,
    Strategy as Strategy,
    Verbose as Verbose,
    note_on as note_on,
    read_max_groups as read_max_groups,
    require_whole_unit as require_whole_unit,
    warning_on as warning_on,
)
from .output import (
    print_json as print_json,
    print_json_list as print_json_list,
    printable as printable,
    progress_bar as progress_bar,
    say as say,
    say_exactly as say_exactly,
    show_confidence as show_confidence,
    show_interval as show_interval,
    show_number as show_number,
    show_size as show_size,
    show_table as show_table,
)
from .schemas import (
    attributes_of_option as attributes_of_option,
    describe_schema as describe_schema,
    show_schema as show_schema,
)
from .steps import quiet_unless_asked as quiet_unless_asked, tell_steps as tell_steps
from .wishes import (
    Asked as Asked,
    Queries as Queries,
    StrategyCommand as StrategyCommand,
    WantedError as WantedError,
    read_workload as read_workload,
)
