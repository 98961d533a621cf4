from .report import AuditFinding as AuditFinding, AuditReport as AuditReport, Witness as Witness
