from .estimator import LatentClasses as LatentClasses
