from .capping import measure_cap as measure_cap
from .protecting import (
    learn_from_history as learn_from_history,
    protect as protect,
    put_behind as put_behind,
    read_rows as read_rows,
)
from .releasing import promise_for as promise_for, release as release, require_releasable as require_releasable
