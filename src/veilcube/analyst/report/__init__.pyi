from .page import (
    ACCENT as ACCENT,
    GROUPS as GROUPS,
    MUTED as MUTED,
    Altair as Altair,
    Chart as Chart,
    MissingExtraError as MissingExtraError,
    Rows as Rows,
    fill_page as fill_page,
    load_extras as load_extras,
    styled as styled,
)
from .reports import REPORT_FILES as REPORT_FILES, Reports as Reports
