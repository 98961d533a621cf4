"""What past answers teach: estimators that read any history of noisy linear answers. Nothing here costs privacy."""

from veilcube.analyst.history.kernel_pca import Eigenqueries, KernelPCA, KernelPCAModel
from veilcube.analyst.history.max_entropy import MaxEntropy
from veilcube.analyst.history.max_entropy_model import Convergence, MaxEntropyModel
from veilcube.analyst.history.sources import HistorySource, read_history

__all__ = [
    "Convergence",
    "Eigenqueries",
    "HistorySource",
    "KernelPCA",
    "KernelPCAModel",
    "MaxEntropy",
    "MaxEntropyModel",
    "read_history",
]
