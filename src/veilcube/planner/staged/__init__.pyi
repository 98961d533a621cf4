from .design import (
    StagedDesign as StagedDesign,
    can_stage as can_stage,
    gaussian_weights as gaussian_weights,
    has_like_neighbours as has_like_neighbours,
    staged_design as staged_design,
    staged_operator as staged_operator,
)
