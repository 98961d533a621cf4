"""What is said when the file of a ledger cannot be used."""

import sqlite3

BUSY = "the ledger {path} is held by another program, so nothing was charged; wait until that is done and try again"
DISK = (
    "the disk failed while the ledger {path} was in use, so no noise may be drawn; repair the disk and look at the "
    "history before trying again, because the charge may stand"
)
DAMAGED = (
    "the ledger {path} is damaged; restore a backup with 'veilcube ledger restore', which also brings back what can "
    "still be read of later charges"
)
NO_LEDGER = "{path} is not a veilcube ledger and was left alone; name another file"
CANNOT_OPEN = (
    "the ledger {path} cannot be opened, so nothing was charged; let this user read and write the file and its folder"
)
KEY_LOST = (
    "the key {key} of the ledger {path} is missing, without which nobody can tell whether the ledger was changed; put "
    "the key back from a backup, or, if you trust the ledger as it is, give it a new one with 'veilcube ledger rekey'"
)
KEY_UNREADABLE = (
    "the key {key} of the ledger {path} cannot be read, so nothing was charged; let this user read it, as everybody "
    "who may charge must"
)
OTHER_KEY = "the key {key} is not that of the ledger {path}, or one of them is damaged; restore a backup of that one"
OLDER = (
    "the ledger {path} is older than the note beside it tells, so charges are missing in it that would be granted "
    "again; put the newer file back, or count what is missing as spent with 'veilcube ledger restore --write-off'"
)
NO_BACKUP = (
    "{source} is no whole backup of the ledger {path}, so nothing was restored; use one that 'veilcube ledger backup' "
    "made of it"
)
IS_THERE = "{target} is there already and was left alone; name another file for the backup"
REASONS = {
    sqlite3.SQLITE_BUSY: BUSY,
    sqlite3.SQLITE_LOCKED: BUSY,
    sqlite3.SQLITE_PROTOCOL: BUSY,
    sqlite3.SQLITE_READONLY: "the ledger {path} is read-only, so nothing was charged; let this user write to the file "
    "and its folder",
    sqlite3.SQLITE_READONLY_DBMOVED: "the ledger {path} was moved or deleted while it was in use, so nothing was "
    "charged; put it back and try again",
    sqlite3.SQLITE_CANTOPEN: CANNOT_OPEN,
    sqlite3.SQLITE_PERM: "the ledger {path} may not be used by this user; let this user write to the file",
    sqlite3.SQLITE_FULL: "the disk that holds the ledger {path} is full, so nothing was charged; free some space and "
    "try again",
    sqlite3.SQLITE_NOTADB: NO_LEDGER,
    sqlite3.SQLITE_CORRUPT: DAMAGED,
    sqlite3.SQLITE_IOERR: DISK,
}


def reason_of(problem: sqlite3.Error) -> str:
    """Return the sentence for what SQLite raised, with ``{path}`` where the file's name goes."""
    primary = primary_code(problem)
    if primary is None:
        return DAMAGED
    name = getattr(problem, "sqlite_errorname", "unknown")
    unknown = f"the ledger {{path}} cannot be used ({name}); nothing was charged"
    return REASONS.get(getattr(problem, "sqlite_errorcode", 0)) or REASONS.get(primary) or unknown


def primary_code(problem: sqlite3.Error) -> int | None:
    """Return SQLite's own number for a problem, None if Python found it."""
    code: int | None = getattr(problem, "sqlite_errorcode", None)
    return None if code is None else code & 0xFF
