from .posterior import Posterior as Posterior
