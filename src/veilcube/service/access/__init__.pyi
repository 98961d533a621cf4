from .caller import Caller as Caller, Role as Role
from .keys import Keys as Keys, MadeKey as MadeKey, StoredKey as StoredKey
from .limits import Limits as Limits
from .sessions import Session as Session, Sessions as Sessions
