"""The tables of a ledger. They hold public facts only: budgets, promises, purposes and noisy answers, never a count.

Rows are added and never changed: triggers forbid it. Amounts are texts such as ``1/10``, because SQLite has no exact
fractions. ``STEPS[k]`` turns version k into version k + 1; a change of layout is a new step, never an edit of an old.
A step that only renames and adds columns with a default leaves every row as it was written.
"""

APPLICATION_ID = int.from_bytes(b"veil", "big")

_EPSILON = """epsilon TEXT NOT NULL CHECK (
        typeof(epsilon) = 'text' AND length(epsilon) <= 700 AND epsilon NOT GLOB '*[^0-9/]*'
        AND epsilon GLOB '[1-9]*' AND epsilon NOT GLOB '*/*/*' AND epsilon NOT GLOB '*/0*' AND epsilon NOT GLOB '*/'
    )"""
_DATASET = "dataset TEXT NOT NULL REFERENCES accounts (dataset)"
_NAMED_ANALYST = "typeof(analyst) = 'text' AND length(analyst) > 0"
_NEIGHBOURS = "CHECK (neighbours IN ('add-remove', 'replace'))"
_UNIT = "CHECK (unit = 'row' OR unit GLOB 'person:?*')"


def _moment(column: str) -> str:
    day, time = "[0-9][0-9][0-9][0-9]-[0-9][0-9]-[0-9][0-9]", "[0-9][0-9]:[0-9][0-9]:[0-9][0-9].[0-9][0-9][0-9]"
    return f"{column} TEXT NOT NULL CHECK ({column} GLOB '{day}T{time}Z')"


def _added_only(table: str, *key: str) -> tuple[str, ...]:
    same = " AND ".join(f"{column} = NEW.{column}" for column in key)
    refuse = f"BEGIN SELECT RAISE(ABORT, '{table} are added and never changed'); END"
    return (
        f"CREATE TRIGGER {table}_not_updated BEFORE UPDATE ON {table} {refuse}",
        f"CREATE TRIGGER {table}_not_deleted BEFORE DELETE ON {table} {refuse}",
        # INSERT OR REPLACE deletes without a word to the trigger above.
        f"CREATE TRIGGER {table}_not_replaced BEFORE INSERT ON {table} "
        f"WHEN EXISTS (SELECT 1 FROM {table} WHERE {same}) {refuse}",
    )


_FIRST_STEP = (
    f"""CREATE TABLE accounts (
    dataset TEXT NOT NULL PRIMARY KEY CHECK (typeof(dataset) = 'text' AND length(dataset) BETWEEN 1 AND 200),
    {_EPSILON},
    neighbours TEXT {_NEIGHBOURS},
    unit TEXT {_UNIT},
    {_moment("created")}
) WITHOUT ROWID""",
    f"""CREATE TABLE charges (
    id INTEGER PRIMARY KEY CHECK (id > 0),
    dataset TEXT NOT NULL REFERENCES accounts (dataset),
    {_EPSILON},
    neighbours TEXT NOT NULL {_NEIGHBOURS},
    unit TEXT NOT NULL {_UNIT},
    statement TEXT NOT NULL CHECK (statement GLOB '{{*}}'),
    purpose TEXT NOT NULL CHECK (typeof(purpose) = 'text' AND length(purpose) > 0),
    analyst TEXT CHECK (analyst IS NULL OR (typeof(analyst) = 'text' AND length(analyst) > 0)),
    {_moment("at")}
)""",
    # Holds all that a charge has to know about earlier ones, so that their number hardly slows it down.
    "CREATE INDEX charges_of_dataset ON charges (dataset, neighbours, unit, epsilon)",
    *_added_only("accounts", "dataset"),
    *_added_only("charges", "id"),
)
# Answers of protected tables, what analysts may spend, and what was spent on parts of partitions.
_SECOND_STEP = (
    """CREATE TABLE schemas (
    fingerprint TEXT NOT NULL PRIMARY KEY CHECK (typeof(fingerprint) = 'text' AND length(fingerprint) > 0),
    described TEXT NOT NULL CHECK (described GLOB '{*}')
) WITHOUT ROWID""",
    f"""CREATE TABLE shares (
    id INTEGER PRIMARY KEY CHECK (id > 0),
    {_DATASET},
    analyst TEXT NOT NULL CHECK ({_NAMED_ANALYST}),
    {_EPSILON},
    {_moment("at")}
)""",
    f"""CREATE TABLE part_charges (
    id INTEGER PRIMARY KEY CHECK (id > 0),
    {_DATASET},
    partition TEXT NOT NULL CHECK (partition GLOB '{{*}}'),
    part TEXT NOT NULL CHECK (part GLOB '[[]*]'),
    {_EPSILON},
    charge INTEGER REFERENCES charges (id),
    {_moment("at")}
)""",
    f"""CREATE TABLE answers (
    id INTEGER PRIMARY KEY CHECK (id > 0),
    {_DATASET},
    charge INTEGER REFERENCES charges (id),
    schema TEXT NOT NULL REFERENCES schemas (fingerprint),
    key TEXT NOT NULL CHECK (typeof(key) = 'text' AND length(key) = 64 AND key NOT GLOB '*[^0-9a-f]*'),
    question TEXT NOT NULL CHECK (question GLOB '{{*}}'),
    outcome TEXT NOT NULL CHECK (outcome GLOB '[[]*]'),
    scales TEXT NOT NULL CHECK (scales GLOB '[[]*]'),
    statement TEXT NOT NULL CHECK (statement GLOB '{{*}}'),
    analyst TEXT CHECK (analyst IS NULL OR ({_NAMED_ANALYST})),
    {_moment("at")}
)""",
    "CREATE INDEX charges_of_analyst ON charges (dataset, analyst, epsilon)",
    "CREATE INDEX shares_of_analyst ON shares (dataset, analyst)",
    "CREATE INDEX part_charges_of_partition ON part_charges (dataset, partition, part, epsilon)",
    "CREATE INDEX part_charges_of_charge ON part_charges (charge)",
    "CREATE INDEX answers_of_question ON answers (dataset, key)",
    *_added_only("schemas", "fingerprint"),
    *_added_only("shares", "id"),
    *_added_only("part_charges", "id"),
    *_added_only("answers", "id"),
)
# Budgets in epsilon or in rho, so that prices are amounts of either, and answers with Laplace or Gaussian noise. A
# column ``family`` says nothing where ``parameters`` names no noise.
_THIRD_STEP = (
    *(
        f"ALTER TABLE {table} RENAME COLUMN epsilon TO amount"
        for table in ("accounts", "charges", "shares", "part_charges")
    ),
    "ALTER TABLE accounts ADD COLUMN currency TEXT NOT NULL DEFAULT 'epsilon' CHECK (currency IN ('epsilon', 'rho'))",
    "ALTER TABLE answers RENAME COLUMN scales TO parameters",
    "ALTER TABLE answers ADD COLUMN family TEXT NOT NULL DEFAULT 'laplace' CHECK (family IN ('laplace', 'gaussian'))",
)
# What people want to know about a charge later on. Of charges that were made before, nobody does.
_FOURTH_STEP = (
    *(
        f"ALTER TABLE charges ADD COLUMN {column} TEXT "
        f"CHECK ({column} IS NULL OR (typeof({column}) = 'text' AND length({column}) > 0))"
        for column in ("output", "schema", "note")
    ),
    "ALTER TABLE charges ADD COLUMN strategy TEXT CHECK (strategy IS NULL OR strategy GLOB '{*}')",
)
# Balances and seals: a link for every row, old rows included (``rows/chain.py``), in place of indexes to sum from.
_FIFTH_STEP = (
    """CREATE TABLE chain (
    holder TEXT NOT NULL CHECK (typeof(holder) = 'text' AND holder GLOB '[[]*]'),
    number INTEGER NOT NULL CHECK (typeof(number) = 'integer' AND number >= 0),
    row_id INTEGER NOT NULL CHECK (typeof(row_id) = 'integer' AND row_id >= 0),
    balance TEXT NOT NULL CHECK (typeof(balance) = 'text' AND balance GLOB '[0-9]*'),
    seal TEXT NOT NULL CHECK (typeof(seal) = 'text' AND length(seal) = 32),
    PRIMARY KEY (holder, number)
) WITHOUT ROWID""",
    "DROP INDEX charges_of_dataset",
    "DROP INDEX charges_of_analyst",
    "DROP INDEX part_charges_of_partition",
    "CREATE INDEX charges_of_dataset ON charges (dataset)",
    "CREATE INDEX part_charges_of_part ON part_charges (dataset, partition, part)",
    *_added_only("chain", "holder", "number"),
)
CHAIN_GUARDS = {statement.split()[2]: statement for statement in _added_only("chain", "holder", "number")}
STEPS: tuple[tuple[str, ...], ...] = (_FIRST_STEP, _SECOND_STEP, _THIRD_STEP, _FOURTH_STEP, _FIFTH_STEP)
# The first version in which every row has a link of the chain.
SEALED = 5
VERSION = len(STEPS)
