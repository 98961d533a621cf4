from .plan import plan as plan
from .release import release as release, save_what_was_paid_for as save_what_was_paid_for
