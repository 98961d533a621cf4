from .haar import HaarAxis as HaarAxis, read_haar_axis as read_haar_axis
from .nominal import NominalAxis as NominalAxis, read_nominal_axis as read_nominal_axis
