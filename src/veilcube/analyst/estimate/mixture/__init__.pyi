from .estimator import LatentClasses as LatentClasses, MixtureEstimate as MixtureEstimate
