from .privacy import refinement_privacy as refinement_privacy
from .release_privacy import check_facts as check_facts
