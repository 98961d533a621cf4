from .guarantee import Guarantee as Guarantee
