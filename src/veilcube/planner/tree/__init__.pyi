from .axis_options import MOST_CELLS_TO_SEARCH as MOST_CELLS_TO_SEARCH
from .strategy import Tree as Tree
