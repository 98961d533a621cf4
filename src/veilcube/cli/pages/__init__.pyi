from .error_curve import (
    Curve as Curve,
    curves_of as curves_of,
    require_drawable as require_drawable,
    text_plot as text_plot,
    write_plot as write_plot,
)
from .synthesis import write_quality_report as write_quality_report
