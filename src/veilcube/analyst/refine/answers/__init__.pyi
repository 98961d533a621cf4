from .answers import (
    NoisyAnswers as NoisyAnswers,
    Refined as Refined,
    Unrefined as Unrefined,
    Values as Values,
    read_answers as read_answers,
    read_factor as read_factor,
    read_names as read_names,
)
from .dependence import independent_rows as independent_rows
from .fitting import judge_answers as judge_answers
from .integers import nearest_integers as nearest_integers
from .intervals import half_widths as half_widths, reach_own as reach_own
from .linear import LinearRefinement as LinearRefinement, best_refinement as best_refinement, read_square as read_square
from .projection import (
    Nearest as Nearest,
    impose_equalities as impose_equalities,
    impose_inequalities as impose_inequalities,
)
