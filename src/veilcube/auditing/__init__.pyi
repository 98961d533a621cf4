from .auditing import audit as audit
from .report import AuditFinding as AuditFinding, AuditReport as AuditReport, Witness as Witness
