from .capping import measure_cap as measure_cap
from .protecting import protect as protect
from .releasing import promise_for as promise_for, release as release, require_releasable as require_releasable
