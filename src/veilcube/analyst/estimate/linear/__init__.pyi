from .least_squares import (
    IdentityEstimate as IdentityEstimate,
    LeastSquares as LeastSquares,
    LinearEstimate as LinearEstimate,
)
from .nonnegative import Nonnegative as Nonnegative
from .thresholded import Thresholded as Thresholded, wanted_thresholding as wanted_thresholding
