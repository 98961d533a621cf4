from .checking import TableProblem as TableProblem, check_table as check_table
from .counting import (
    WAYS_OUT as WAYS_OUT,
    WORKING_BYTES as WORKING_BYTES,
    Progress as Progress,
    Source as Source,
    count as count,
)
from .cube import Cube as Cube, RowList as RowList, Tally as Tally
from .drafting import draft_schema as draft_schema
from .ledger import (
    Charge as Charge,
    ChargeDetails as ChargeDetails,
    Checked as Checked,
    DatasetAccount as DatasetAccount,
    Ledger as Ledger,
    LedgerHistory as LedgerHistory,
    Receipt as Receipt,
    SeenTables as SeenTables,
    Share as Share,
    Sight as Sight,
    StoredAnswer as StoredAnswer,
    charge_stands as charge_stands,
)
from .mechanisms import (
    ChosenPartsMechanism as ChosenPartsMechanism,
    ExcessMechanism as ExcessMechanism,
    GroupedTablesMechanism as GroupedTablesMechanism,
    LinearMechanism as LinearMechanism,
    Mechanism as Mechanism,
    NoisyPartsMechanism as NoisyPartsMechanism,
    PersonsMechanism as PersonsMechanism,
    Protection as Protection,
    QuantileMechanism as QuantileMechanism,
    RankMechanism as RankMechanism,
    Samplers as Samplers,
    StagedTreeMechanism as StagedTreeMechanism,
    SumsMechanism as SumsMechanism,
    mechanism_for as mechanism_for,
)
from .persons import PersonRows as PersonRows
from .protected import Desk as Desk, PrivateRows as PrivateRows, ProtectedTable as ProtectedTable
from .tables import find_files as find_files
