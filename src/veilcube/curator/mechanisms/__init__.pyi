from .base import Mechanism as Mechanism, NoiseSampler as NoiseSampler, redeem_for as redeem_for
from .linear import IdentityMechanism as IdentityMechanism, LinearMechanism as LinearMechanism
from .partition import AdaptiveMechanism as AdaptiveMechanism
from .quantiles import (
    ReadQuantiles as ReadQuantiles,
    draw_quantiles as draw_quantiles,
    read_quantiles_from_refined_tree as read_quantiles_from_refined_tree,
    read_quantiles_from_tree as read_quantiles_from_tree,
    require_drawable as require_drawable,
)
from .registry import mechanism_for as mechanism_for
from .staged import StagedTreeMechanism as StagedTreeMechanism
