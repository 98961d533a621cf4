from .copies import back_up as back_up, give_new_key as give_new_key, restore as restore
from .file import LedgerFile as LedgerFile, read_location as read_location
from .postgres import PostgresLedger as PostgresLedger
from .store import Store as Store
