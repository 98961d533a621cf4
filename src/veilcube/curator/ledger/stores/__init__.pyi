from .file import LedgerFile as LedgerFile, read_location as read_location
