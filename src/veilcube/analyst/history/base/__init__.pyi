from .alpha import (
    AlphaSearch as AlphaSearch,
    Spectrum as Spectrum,
    cross_validate as cross_validate,
    leave_one_out as leave_one_out,
    read_alpha as read_alpha,
)
from .conditioning import Combinations as Combinations, Conditioning as Conditioning, Whitening as Whitening
from .kernel import ProductKernel as ProductKernel
from .prior import Prior as Prior, promises_of_prior as promises_of_prior, read_prior as read_prior
from .shares import Shares as Shares
from .sources import HistorySource as HistorySource, read_history as read_history
