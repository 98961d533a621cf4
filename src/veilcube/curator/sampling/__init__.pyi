from .gaussian import discrete_gaussian as discrete_gaussian
from .joint import joint_laplace as joint_laplace, sharpened_laplace as sharpened_laplace
from .laplace import discrete_laplace as discrete_laplace
from .rank import (
    ROUNDING_GRID as ROUNDING_GRID,
    draw_cheapest as draw_cheapest,
    draw_rank as draw_rank,
    drawable as drawable,
)
from .source import RandomWords as RandomWords, SystemWords as SystemWords
