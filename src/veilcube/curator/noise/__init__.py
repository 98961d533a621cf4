"""Exact discrete noise, and the only code in veilcube that reads entropy."""

from veilcube.curator.noise.joint import joint_laplace
from veilcube.curator.noise.laplace import discrete_laplace
from veilcube.curator.noise.sharpened import sharpened_laplace
from veilcube.curator.noise.source import RandomWords, SystemWords

__all__ = ["RandomWords", "SystemWords", "discrete_laplace", "joint_laplace", "sharpened_laplace"]
