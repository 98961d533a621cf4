from .arguments import (
    DEEPEST_LIST as DEEPEST_LIST,
    is_encodable as is_encodable,
    is_writable as is_writable,
    read_choice as read_choice,
    read_flag as read_flag,
    read_kind as read_kind,
    read_numbers as read_numbers,
    read_path as read_path,
    read_progress as read_progress,
    read_real as read_real,
    read_text as read_text,
    read_whole as read_whole,
    show as show,
    takes as takes,
)
from .arrays import Floats as Floats, Integers as Integers
from .extras import MissingExtraError as MissingExtraError, load_extra as load_extra
from .files import (
    atomic_file as atomic_file,
    hold as hold,
    read_text_file as read_text_file,
    remove_leftovers as remove_leftovers,
)
from .keys import (
    begin_key_file as begin_key_file,
    new_key as new_key,
    read_key_file as read_key_file,
    sync_folder as sync_folder,
)
from .loops import (
    THREADS as THREADS,
    compile_loop as compile_loop,
    compiled as compiled,
    compiled_fast as compiled_fast,
    compiled_if_long as compiled_if_long,
    compiled_inside as compiled_inside,
    share_out as share_out,
)
from .memory import (
    CELLS_WORTH_A_CHECK as CELLS_WORTH_A_CHECK,
    available_memory as available_memory,
    format_bytes as format_bytes,
    require_cells as require_cells,
    require_memory as require_memory,
)
from .notebook import as_html as as_html
from .page import (
    ACCENT as ACCENT,
    GRID as GRID,
    GROUPS as GROUPS,
    INK as INK,
    MUTED as MUTED,
    Altair as Altair,
    Chart as Chart,
    Rows as Rows,
    Spec as Spec,
    fill_page as fill_page,
    load_extras as load_extras,
    spec_of as spec_of,
    styled as styled,
)
from .words import (
    did_you_mean as did_you_mean,
    nearest as nearest,
    show_confidence as show_confidence,
    show_interval as show_interval,
    show_number as show_number,
)
