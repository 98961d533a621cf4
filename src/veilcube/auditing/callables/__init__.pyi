from .domain import Pair as Pair, SmallTables as SmallTables
from .enumerating import check_exactly as check_exactly
from .noise import LiveNoise as LiveNoise, MechanismNoise as MechanismNoise
from .replaying import check_replay as check_replay
from .running import call as call, takes_noise as takes_noise, unheard as unheard
