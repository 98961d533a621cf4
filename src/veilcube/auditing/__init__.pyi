from .auditing import audit as audit
from .ours import OURS as OURS
from .report import AuditFinding as AuditFinding, AuditReport as AuditReport, Witness as Witness
