from .error_curve import (
    Curve as Curve,
    curves_of as curves_of,
    require_drawable as require_drawable,
    text_plot as text_plot,
    write_plot as write_plot,
)
from .page import MissingExtraError as MissingExtraError, load_extras as load_extras
from .report import ReportPlan as ReportPlan, write_report as write_report
from .synthesis import write_quality_report as write_quality_report
