from .archive import OtherReadings as OtherReadings
from .cap import (
    DEFAULT_BOUND as DEFAULT_BOUND,
    LARGEST_BOUND as LARGEST_BOUND,
    LARGEST_CAP_EPSILON as LARGEST_CAP_EPSILON,
    ExcessBins as ExcessBins,
    MeasuredCap as MeasuredCap,
    MeasuredPersons as MeasuredPersons,
    RowBins as RowBins,
    changed_bins as changed_bins,
)
from .file import open_record as open_record, require_savable as require_savable, save_record as save_record
from .history import History as History
from .joint_blocks import JointBlocks as JointBlocks, joint_blocks as joint_blocks
from .measurement import (
    NoisyMeasurement as NoisyMeasurement,
    sensitivity_l2_squared_of as sensitivity_l2_squared_of,
    sensitivity_of as sensitivity_of,
)
from .questions import (
    Moment as Moment,
    Question as Question,
    canonical_region as canonical_region,
    linear_queries as linear_queries,
    region_from_data as region_from_data,
    region_to_data as region_to_data,
    shortened as shortened,
)
from .record import ReleaseRecord as ReleaseRecord
from .sharpening import drop_superseded as drop_superseded
from .strict_json import dump_json as dump_json, parse_json as parse_json
