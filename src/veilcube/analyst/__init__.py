"""The public side: everything that reads a release. Nothing here can cost privacy."""

from veilcube.analyst.quantile import DateAnswer
from veilcube.analyst.release import Release, open_release

__all__ = ["DateAnswer", "Release", "open_release"]
