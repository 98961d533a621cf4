from .observations import Posterior as Posterior, posterior as posterior
from .parity import walsh_hadamard as walsh_hadamard
from .summed_posterior import SummedPosterior as SummedPosterior
