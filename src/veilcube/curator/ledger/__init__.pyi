from .account import Charge as Charge, ChargeDetails as ChargeDetails, DatasetAccount as DatasetAccount
from .answers import StoredAnswer as StoredAnswer
from .history import LedgerHistory as LedgerHistory
from .ledger import Ledger as Ledger
from .receipt import Receipt as Receipt
from .refusals import charge_stands as charge_stands
from .seen import SeenTables as SeenTables, Sight as Sight
from .shares import PartOf as PartOf, Share as Share
