from .strategy import Marginals as Marginals
