from .asking import KINDS as KINDS, Asked as Asked, Kind as Kind, Question as Question, ask as ask
from .budgets import (
    Forecast as Forecast,
    plain_budget as plain_budget,
    plain_charge as plain_charge,
    plain_shares as plain_shares,
    price_of_count as price_of_count,
    share_of as share_of,
    what_is_left as what_is_left,
)
from .datasets import Dataset as Dataset, Datasets as Datasets, open_budget as open_budget, written_at as written_at
from .learning import learned as learned
from .opened import Tables as Tables, Till as Till, require_share as require_share
from .questions import ANSWERED as ANSWERED, AskedQuestion as AskedQuestion, Questions as Questions
from .sources import (
    FILE_PATTERN as FILE_PATTERN,
    TABLE_PATTERN as TABLE_PATTERN,
    Place as Place,
    data_files as data_files,
    declared_sources as declared_sources,
    locate as locate,
)
