from .keeper import Keeper as Keeper
from .pricing import plan_for as plan_for, price_facts as price_facts
from .queue import Job as Job, Jobs as Jobs
