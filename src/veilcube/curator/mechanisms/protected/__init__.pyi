from .base import Protection as Protection, Samplers as Samplers
from .distributive import (
    ChosenPartsMechanism as ChosenPartsMechanism,
    NoisyPartsMechanism as NoisyPartsMechanism,
)
from .quantiles import QuantileMechanism as QuantileMechanism, ReadQuantiles as ReadQuantiles
from .ranks import RankMechanism as RankMechanism
from .sums import SumsMechanism as SumsMechanism
