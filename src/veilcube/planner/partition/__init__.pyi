from .design import AdaptiveDesign as AdaptiveDesign
from .strategy import Adaptive as Adaptive, KdTree as KdTree
