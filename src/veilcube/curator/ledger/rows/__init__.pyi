from .account import (
    Charge as Charge,
    ChargeDetails as ChargeDetails,
    DatasetAccount as DatasetAccount,
    Standing as Standing,
    account_names as account_names,
    add_account as add_account,
    add_charge as add_charge,
    next_charge as next_charge,
    read_account as read_account,
    read_charges as read_charges,
    read_standing as read_standing,
    read_statement as read_statement,
    write_statement as write_statement,
)
from .answers import (
    StoredAnswer as StoredAnswer,
    add_answer as add_answer,
    can_be_kept as can_be_kept,
    read_answers as read_answers,
    read_schemas as read_schemas,
)
from .book import Book as Book, Connection as Connection, DamagedRowError as DamagedRowError, Rows as Rows
from .chain import has_key_of as has_key_of, seal_of as seal_of
from .shares import (
    PartOf as PartOf,
    Share as Share,
    add_part_charges as add_part_charges,
    add_share as add_share,
    analysts_with_shares as analysts_with_shares,
    last_of_analyst as last_of_analyst,
    lose_parts as lose_parts,
    price_within as price_within,
    read_kept_share as read_kept_share,
    read_share as read_share,
    share_allows as share_allows,
)
from .whole import (
    Checked as Checked,
    begin_for_all as begin_for_all,
    bring_over as bring_over,
    check_whole as check_whole,
)
