from .asking import Asking as Asking
from .contrasts import answer_linear as answer_linear
from .quantile import (
    DateAnswer as DateAnswer,
    DateAnswers as DateAnswers,
    answer_distributive as answer_distributive,
    locate_quantile as locate_quantile,
)
from .questions import Questions as Questions
