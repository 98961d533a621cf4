from .axis import (
    LARGEST_MATCHED as LARGEST_MATCHED,
    MOST_ENTRIES as MOST_ENTRIES,
    MatchedAxis as MatchedAxis,
    read_matched_axis as read_matched_axis,
)
