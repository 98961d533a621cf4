from .history import LedgerHistory as LedgerHistory
from .ledger import Ledger as Ledger
from .receipt import Receipt as Receipt
from .refusals import charge_stands as charge_stands
from .rows import (
    Charge as Charge,
    ChargeDetails as ChargeDetails,
    Checked as Checked,
    DatasetAccount as DatasetAccount,
    PartOf as PartOf,
    Share as Share,
    StoredAnswer as StoredAnswer,
)
from .seen import SeenTables as SeenTables, Sight as Sight
