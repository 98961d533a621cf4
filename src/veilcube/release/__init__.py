"""The public artifact as plain data: noisy measurements, the record that holds them, and its file."""

from veilcube.release.file import open_record, require_savable, save_record
from veilcube.release.history import History
from veilcube.release.joint_blocks import JointBlocks, joint_blocks
from veilcube.release.measurement import NoisyMeasurement
from veilcube.release.record import ReleaseRecord
from veilcube.release.sharpening import in_force

__all__ = [
    "History",
    "JointBlocks",
    "NoisyMeasurement",
    "ReleaseRecord",
    "in_force",
    "joint_blocks",
    "open_record",
    "require_savable",
    "save_record",
]
