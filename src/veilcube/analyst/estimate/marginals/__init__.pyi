from .coarse_entropy import DEVIATIONS_OF_95_PERCENT as DEVIATIONS_OF_95_PERCENT
from .entropy import IMPUTED as IMPUTED, MarginalMaxEntropy as MarginalMaxEntropy
from .tables import MarginalsEstimate as MarginalsEstimate
