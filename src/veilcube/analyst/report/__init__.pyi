from .card import HOW_TO_READ as HOW_TO_READ, facts_of as facts_of
from .gathering import Reported as Reported
from .reports import REPORT_FILES as REPORT_FILES, Reports as Reports
