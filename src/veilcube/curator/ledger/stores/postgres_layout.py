"""The tables of a ledger in PostgreSQL: those of the file (``layout.py``), with key and requests in the database.

``STEPS[k]`` turns version k into version k + 1. Rows are added and never changed: triggers forbid it to everybody, and
grants to whoever does not own the tables.
"""

_TABLES = ("accounts", "charges", "schemas", "shares", "part_charges", "answers", "chain", "requests")
_AMOUNT = "amount text NOT NULL CHECK (amount ~ '^[1-9][0-9]*(/[1-9][0-9]*)?$')"
_FIRST_STEP = (
    f"""CREATE TABLE accounts (
    dataset text PRIMARY KEY CHECK (length(dataset) BETWEEN 1 AND 200),
    {_AMOUNT},
    neighbours text CHECK (neighbours IN ('add-remove', 'replace')),
    unit text,
    created text NOT NULL,
    currency text NOT NULL CHECK (currency IN ('epsilon', 'rho'))
)""",
    f"""CREATE TABLE charges (
    id bigint PRIMARY KEY CHECK (id > 0),
    dataset text NOT NULL REFERENCES accounts,
    {_AMOUNT},
    neighbours text NOT NULL CHECK (neighbours IN ('add-remove', 'replace')),
    unit text NOT NULL,
    statement text NOT NULL,
    purpose text NOT NULL,
    analyst text,
    at text NOT NULL,
    output text,
    schema text,
    strategy text,
    note text
)""",
    "CREATE INDEX charges_of_dataset ON charges (dataset, id)",
    "CREATE TABLE schemas (fingerprint text PRIMARY KEY, described text NOT NULL)",
    f"""CREATE TABLE shares (
    id bigint PRIMARY KEY CHECK (id > 0),
    dataset text NOT NULL REFERENCES accounts,
    analyst text NOT NULL,
    {_AMOUNT},
    at text NOT NULL
)""",
    "CREATE INDEX shares_of_analyst ON shares (dataset, analyst, id)",
    f"""CREATE TABLE part_charges (
    id bigint PRIMARY KEY CHECK (id > 0),
    dataset text NOT NULL REFERENCES accounts,
    partition text NOT NULL,
    part text NOT NULL,
    {_AMOUNT},
    charge bigint REFERENCES charges,
    at text NOT NULL
)""",
    # Texts of parts may be longer than what a B-tree takes.
    "CREATE INDEX part_charges_of_part ON part_charges USING hash (part)",
    "CREATE INDEX part_charges_of_charge ON part_charges (charge)",
    """CREATE TABLE answers (
    id bigint PRIMARY KEY CHECK (id > 0),
    dataset text NOT NULL REFERENCES accounts,
    charge bigint REFERENCES charges,
    schema text NOT NULL REFERENCES schemas,
    key text NOT NULL CHECK (key ~ '^[0-9a-f]{64}$'),
    question text NOT NULL,
    outcome text NOT NULL,
    parameters text NOT NULL,
    statement text NOT NULL,
    analyst text,
    at text NOT NULL,
    family text NOT NULL CHECK (family IN ('laplace', 'gaussian'))
)""",
    "CREATE INDEX answers_of_question ON answers (dataset, key)",
    """CREATE TABLE chain (
    holder text NOT NULL,
    number bigint NOT NULL CHECK (number >= 0),
    row_id bigint NOT NULL CHECK (row_id >= 0),
    balance text NOT NULL CHECK (balance ~ '^[0-9]'),
    seal text NOT NULL CHECK (length(seal) = 32),
    PRIMARY KEY (holder, number)
)""",
    # What a client asked for, by a number that it made up: so it finds out what became of it if its connection drops.
    "CREATE TABLE requests (token text PRIMARY KEY)",
    "CREATE TABLE seal_key (key text NOT NULL)",
    """CREATE FUNCTION refuse_change() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN RAISE EXCEPTION 'rows of a ledger are added and never changed'; END $$""",
    *(
        f"CREATE TRIGGER {table}_stay BEFORE UPDATE OR DELETE OR TRUNCATE ON {table} "
        "FOR EACH STATEMENT EXECUTE FUNCTION refuse_change()"
        for table in _TABLES
    ),
)
STEPS: tuple[tuple[str, ...], ...] = (_FIRST_STEP,)
VERSION = len(STEPS)
SCHEMA = "veilcube_ledger"
