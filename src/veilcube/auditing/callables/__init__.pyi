from .comparing import check_statistics as check_statistics, require_outputs as require_outputs
from .domain import Pair as Pair, SmallTables as SmallTables
from .enumerating import check_exactly as check_exactly
from .noise import LiveNoise as LiveNoise, MechanismNoise as MechanismNoise
from .replaying import (
    Replay as Replay,
    check_replay as check_replay,
    epsilon_spent as epsilon_spent,
    exceeds as exceeds,
)
from .running import call as call, takes_noise as takes_noise, unheard as unheard
