from .asked import ASKED as ASKED, ask as ask
from .catalogue import OURS as OURS, findings_of_ours as findings_of_ours, units_of_rows as units_of_rows
from .claims import check_claims as check_claims, largest_change as largest_change
from .courses import check_courses as check_courses, loss_of_course as loss_of_course
from .strategies import MEASURED as MEASURED, StrategyMechanism as StrategyMechanism
