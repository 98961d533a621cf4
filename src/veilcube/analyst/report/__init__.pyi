from .reports import REPORT_FILES as REPORT_FILES, Reports as Reports
