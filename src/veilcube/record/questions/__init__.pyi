from .canonical_region import (
    canonical_region as canonical_region,
    region_from_data as region_from_data,
    region_to_data as region_to_data,
)
from .moment import Moment as Moment, linear_queries as linear_queries
from .question import Question as Question, shortened as shortened
