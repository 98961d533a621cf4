from .asking import CapAnswers as CapAnswers
from .beyond_cap import BeyondCap as BeyondCap
from .choices import CapChoice as CapChoice, MeasuredRows as MeasuredRows
