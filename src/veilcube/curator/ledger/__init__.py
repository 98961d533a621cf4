"""The budget ledger: what was promised about each dataset, what was spent, the proof of a charge, and answers given."""

from veilcube.curator.ledger.account import Charge, DatasetAccount
from veilcube.curator.ledger.answers import StoredAnswer
from veilcube.curator.ledger.history import LedgerHistory
from veilcube.curator.ledger.ledger import Ledger
from veilcube.curator.ledger.parts import PartOf
from veilcube.curator.ledger.receipt import Receipt
from veilcube.curator.ledger.refusals import charge_stands
from veilcube.curator.ledger.shares import Share

__all__ = [
    "Charge",
    "DatasetAccount",
    "Ledger",
    "LedgerHistory",
    "PartOf",
    "Receipt",
    "Share",
    "StoredAnswer",
    "charge_stands",
]
