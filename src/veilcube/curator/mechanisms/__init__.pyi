from .base import Mechanism as Mechanism, NoiseSampler as NoiseSampler, redeem_for as redeem_for
from .cap import ExcessMechanism as ExcessMechanism, PersonsMechanism as PersonsMechanism
from .grouped import GroupedTablesMechanism as GroupedTablesMechanism
from .linear import IdentityMechanism as IdentityMechanism, LinearMechanism as LinearMechanism
from .partition import AdaptiveMechanism as AdaptiveMechanism
from .protected import (
    ChosenPartsMechanism as ChosenPartsMechanism,
    NoisyPartsMechanism as NoisyPartsMechanism,
    Protection as Protection,
    QuantileMechanism as QuantileMechanism,
    RankMechanism as RankMechanism,
    ReadQuantiles as ReadQuantiles,
    Samplers as Samplers,
    SumsMechanism as SumsMechanism,
)
from .registry import mechanism_for as mechanism_for
from .staged import StagedTreeMechanism as StagedTreeMechanism
