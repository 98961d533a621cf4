from .cap import MeasuredRows as MeasuredRows
from .estimate import IMPUTED as IMPUTED
from .export import table_format as table_format
from .history import (
    KernelPCA as KernelPCA,
    KernelPCAModel as KernelPCAModel,
    MaxEntropy as MaxEntropy,
    MaxEntropyModel as MaxEntropyModel,
    Quality as Quality,
    judge_rows as judge_rows,
    read_history as read_history,
)
from .publish import ASSETS as ASSETS, SCRIPTS as SCRIPTS, explore_body as explore_body, explored as explored
from .questions import DateAnswer as DateAnswer
from .refine import (
    Fact as Fact,
    FactSource as FactSource,
    RefinedRelease as RefinedRelease,
    RefinementPrivacy as RefinementPrivacy,
    open as open,
    open_release as open_release,
    read_sentence as read_sentence,
    refine as refine,
    refine_release as refine_release,
    refinement_privacy as refinement_privacy,
)
from .release import Release as Release
from .report import REPORT_FILES as REPORT_FILES
from .study import posterior as posterior, walsh_hadamard as walsh_hadamard
from .synthesis import format_for as format_for
