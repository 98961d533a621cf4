from .fitting import KernelPCA as KernelPCA
from .model import Eigenqueries as Eigenqueries, KernelPCAModel as KernelPCAModel
