"""The budget ledger: what was promised about each dataset, what was spent of it, and the proof that a charge stands."""

from veilcube.curator.ledger.account import Charge, DatasetAccount
from veilcube.curator.ledger.ledger import Ledger
from veilcube.curator.ledger.receipt import Receipt

__all__ = ["Charge", "DatasetAccount", "Ledger", "Receipt"]
