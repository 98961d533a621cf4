"""The tables of the database of a service. Nothing private is in them: names, digests, noisy answers, and who did what.

``STEPS[k]`` turns version k into version k + 1; a change is a new step, never an edit of an old one.
"""

_KEPT = """CREATE TRIGGER {table}_{what} BEFORE {what} ON {table} BEGIN
    SELECT RAISE(ABORT, 'rows of {table} are never changed'); END"""

STEPS: tuple[tuple[str, ...], ...] = (
    (
        """CREATE TABLE service (id INTEGER PRIMARY KEY CHECK (id = 1), mark TEXT NOT NULL, created TEXT NOT NULL)""",
        """CREATE TABLE keys (
            id TEXT PRIMARY KEY, name TEXT NOT NULL, role TEXT NOT NULL CHECK (role IN ('curator','analyst','auditor')),
            hash TEXT NOT NULL, created TEXT NOT NULL, expires TEXT, revoked TEXT, made_by TEXT NOT NULL) STRICT""",
        """CREATE TABLE sessions (
            digest TEXT PRIMARY KEY, key TEXT NOT NULL REFERENCES keys (id), csrf TEXT NOT NULL,
            begun REAL NOT NULL, seen REAL NOT NULL) STRICT""",
        """CREATE TABLE datasets (
            name TEXT PRIMARY KEY, source TEXT NOT NULL, within TEXT, schema TEXT NOT NULL, person TEXT,
            max_rows INTEGER, neighbours TEXT NOT NULL, created TEXT NOT NULL, made_by TEXT NOT NULL) STRICT""",
        _KEPT.format(table="datasets", what="UPDATE"),
        """CREATE TABLE jobs (
            id INTEGER PRIMARY KEY, kind TEXT NOT NULL, result TEXT NOT NULL, wish TEXT NOT NULL, owner TEXT NOT NULL,
            state TEXT NOT NULL CHECK (state IN ('waiting','running','done','failed')), step TEXT NOT NULL,
            share REAL, message TEXT, charge INTEGER, attempts INTEGER NOT NULL, created TEXT NOT NULL, ended TEXT)
            STRICT""",
        """CREATE TABLE questions (
            id TEXT PRIMARY KEY, dataset TEXT NOT NULL, analyst TEXT NOT NULL, request TEXT NOT NULL,
            asked TEXT NOT NULL, outcome TEXT, status INTEGER, created TEXT NOT NULL,
            UNIQUE (analyst, request)) STRICT""",
        """CREATE TABLE audit (
            id INTEGER PRIMARY KEY, at TEXT NOT NULL, who TEXT NOT NULL, role TEXT NOT NULL, action TEXT NOT NULL,
            what TEXT NOT NULL, outcome TEXT NOT NULL, chain TEXT NOT NULL) STRICT""",
        _KEPT.format(table="audit", what="UPDATE"),
        _KEPT.format(table="audit", what="DELETE"),
    ),
    (
        "DROP TABLE jobs",
        """CREATE TABLE jobs (
            id INTEGER PRIMARY KEY, dataset TEXT NOT NULL, result TEXT NOT NULL, wish TEXT NOT NULL,
            owner TEXT NOT NULL, state TEXT NOT NULL CHECK (state IN ('queued','running','done','failed')),
            step TEXT NOT NULL,
            share REAL, message TEXT, charge TEXT, created TEXT NOT NULL, begun TEXT, ended TEXT) STRICT""",
        "CREATE UNIQUE INDEX one_job_for_a_result ON jobs (result) WHERE state IN ('queued','running')",
        "CREATE INDEX questions_of_analysts ON questions (analyst, created)",
    ),
)
