from .audit import Audit as Audit, AuditEntry as AuditEntry
from .database import Database as Database
