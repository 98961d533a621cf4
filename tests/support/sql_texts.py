"""Random SQL texts about one small table, from a grammar that knows good, odd and impossible spellings."""

import random
from collections.abc import Sequence

import veilcube as vc

SCHEMA = vc.Schema(
    [
        vc.Ordinal("age", 20, 40, missing="cell"),
        vc.Ordinal("income", edges=[0, 10_000, 20_000, 50_000]),
        vc.Ordinal("admitted", "2024-02-27", "2024-03-04"),
        vc.Nominal("job", ["Nurse", "Aide", "O'Hara", "ü"], missing="cell"),
        vc.Nominal("well", ["true", "false"]),
    ]
)
COLUMNS = {"age": "INTEGER", "income": "INTEGER", "admitted": "DATE", "job": "VARCHAR", "well": "VARCHAR"}
# At least one value for each cell, and both ends of every bin.
VALUES: dict[str, tuple[object, ...]] = {
    "age": (*range(20, 41), None),
    "income": (0, 9_999, 10_000, 19_999, 20_000, 50_000),
    "admitted": ("2024-02-27", "2024-02-28", "2024-02-29", "2024-03-01", "2024-03-02", "2024-03-03", "2024-03-04"),
    "job": ("Nurse", "Aide", "O'Hara", "ü", None),
    "well": ("true", "false"),
}

NAMES = ("age", "income", "admitted", "job", "well", "AGE", "(age)", '"age"', '"Income"', "people.age", "((job))")
ODD_NAMES = ("hours", '"no"', "`age`", "[age]", "a.b.c.age", '""', "age.income", "#1", "rowid", "*")
WHOLE = (
    "0",
    "1",
    "20",
    "21",
    "30",
    "40",
    "41",
    "007",
    "-1",
    "+25",
    "10000",
    "20000",
    "50000",
    "1_000",
    "- 3",
    "-(-25)",
)
OTHER_NUMBERS = (
    "29.5", "30.", ".5", "-.5", "1e4", "2E4", "1E+2", "1e-3", "20000.0", "1e308", "1e309", "-1e999", "0.1e-400",
    "9" * 30, "9" * 400, "9" * 5000, "1e4.0", "1e", "1e+", "1e1e1", "1.2.3", "1..2", "0x1F", "0b101", "1_", "1,000",
    "1%", "$1", "?", ":x", "@x", "1d", "nan", "NaN", "inf", "Infinity", "٣", "²", "½", "--1", "'30'", "' 30 '", "'1e5'",
)  # fmt: skip
DATES = (
    "'2024-03-01'", "'2024-02-29'", "DATE '2024-03-02'", "CAST('2024-02-28' AS DATE)", "'2024-03-03'::DATE",
    "'1999-01-01'", "'9999-12-31'", "'2024-03'", "'2024'", "'2024-02-30'", "'2024-13'", "'0000'", "'0000-00-00'",
    "'10000-01-01'", "DATE ''", "DATE 2024", "DATE NULL", "CAST(NULL AS DATE)", "CAST(age AS DATE)", "CAST(1 AS DATE)",
    "TIMESTAMP '2024-03-01 00:00:00'", "'2024-03-01T00:00'", "'2024-03-01 00:00:00+01:00'", "CURRENT_DATE", "NOW()",
    "INTERVAL 1 DAY", "TRY_CAST('2024-03-01' AS DATE)", "'٢٠٢٤'", "-DATE '2024-03-01'",
)  # fmt: skip
TEXTS = (
    "'Nurse'", "'Aide'", "'O''Hara'", "'ü'", "'true'", "'false'", "TRUE", "FALSE", "'nurse'", "'Surgeon'", "''", "'%'",
    "'\U0001f600'", "'\x00'", "'\n'", '"Nurse"', "Nurse", "E'\\n'", "N'x'", "X'ff'", "$$x$$", "'(missing)'", "'\ud800'",
    f"'{'x' * 3000}'", "-'x'", "'a' || 'b'",
)  # fmt: skip
ODDITIES = (
    "NULL", "(NULL)", "-NULL", "-TRUE", "(1, 2)", "[1, 2]", "{'a': 1}", "*", "(SELECT 1)", "ABS(1)", "F()", "COUNT(*)",
    "1 + 1", "-age", "CASE WHEN TRUE THEN 1 END", "()", "", "x -> 1", "1 IS NULL", "NOT 1", "age::TEXT", "1 AND 2",
    "EXTRACT(YEAR FROM admitted)", "((((30))))", "array[1]", "/* a comment */ 30", "30 -- a comment\n",
)  # fmt: skip
SUITED = {
    "age": (*WHOLE, "29.5", "NULL", "1e1", "2.5e1"),
    "income": ("0", "10000", "20000", "50000", "1e4", "20000.0", "1_0000", "NULL", "9999", "19999", "-5", "60000"),
    "admitted": (*DATES[:7], "NULL"),
    "job": (*TEXTS[:4], "NULL"),
    "well": ("'true'", "'false'", "TRUE", "FALSE"),
}
SIGNS = ("=", "<>", "!=", "<", "<=", ">", ">=")
ODD_SIGNS = ("==", "<=>", "LIKE", "ILIKE", "~", "||", "IS DISTINCT FROM", "^@", "->", "&&", "@>", "IS", "IN", "")
ODD_FORMS = (
    "{value}", "{name}", "{name} {value}", "{name} = ANY ({value})", "EXISTS ({value})", "{name} IN {value}",
    "{name} IN ()", "20 <= {name} < {value}", "{name} BETWEEN {value}", "{name} BETWEEN SYMMETRIC {value} AND 3",
    "{name} = {value} COLLATE x",
)  # fmt: skip
STRAYS = (
    "'", '"', "(", ")", ";", "--", "/*", "*/", "\x00", "\n", "\\", "\ud800", "é", ",", ".", "$", "{", "}", "[", "]",
    "%", "`", "\U0001f600", " -- c\n", "/* c */", "\u202e", "\ufeff", "\u00a0",
)  # fmt: skip
EXTREMES = (
    "", "   ", ";", ";;", "--", "/**/", "NULL", "TRUE", "'", "(" * 30 + "TRUE" + ")" * 30, "(" * 3000,
    "NOT " * 2000 + "TRUE", "NOT " * 40 + "TRUE", " AND ".join(["age = 30"] * 3000), " OR ".join(["age = 30"] * 3000),
    " AND NOT (age = 30 OR ".join(["age = 20"] * 30), "- " * 500 + "1 < age", "age = " + "- " * 3001 + "3",
    f"age IN ({', '.join(map(str, range(20, 41)))})", "CASE " * 500, "age " * 5000, "'" * 1001, "[" * 2000, "{" * 2000,
    "age = " + "[" * 500 + "1" + "]" * 500, "x." * 2000 + "age = 3", "age" + "::int" * 1000 + " = 3", "x" * 100_001,
    "f(" * 31 + "1" + ")" * 31, "age IN (" + "30," * 20_000 + "30)", "age BETWEEN " + "9" * 50_000 + " AND 1",
)  # fmt: skip
SELECTED = (
    "COUNT(*)", "COUNT(*)", "COUNT(*)", "COUNT(1)", "COUNT(*) AS n", "job, COUNT(*)", "COUNT(*), job", "*",
    "COUNT(age)", "COUNT(DISTINCT age)", "SUM(age)", "COUNT()", "COUNT(*), COUNT(*)", "COUNT('x')", "COUNT(1e4.0)", "",
    "age.*", "DISTINCT COUNT(*)", "COUNT(*) FILTER (WHERE TRUE)", "COUNT(*) OVER ()", "job AS age, COUNT(*)",
)  # fmt: skip
SOURCES = (
    " FROM people", " FROM people", " FROM people", "", " FROM a.b.c", " FROM people AS p", " FROM a, b", " FROM",
    " FROM (SELECT 1)", " FROM 'x.csv'", " FROM people p(a, b)", " FROM read_csv('x')", " FROM VALUES (1)",
    " FROM people JOIN b ON 1 = 1", " FROM people TABLESAMPLE 10%",
)  # fmt: skip
ENDINGS = (
    "", "", "", "", " GROUP BY job", " GROUP BY job, age", " GROUP BY (job)", " GROUP BY job, JOB", " GROUP BY 1",
    " GROUP BY ALL", " GROUP BY", " GROUP BY ROLLUP (job)", " GROUP BY ()", " GROUP BY nothing", " GROUP BY (job, age)",
    " ORDER BY 1", " LIMIT 1", " HAVING 1", " GROUP BY *", ";", "; SELECT 1", " UNION SELECT 1",
)  # fmt: skip


class SqlTexts:
    """A seeded source of texts; ``oddness`` is how often a piece is taken from the strange ones."""

    def __init__(self, seed: int, oddness: float) -> None:
        self._chance, self._oddness = random.Random(seed), oddness

    def statement(self) -> str:
        """Return a condition, a WHERE clause, a whole statement, or what merely looks like one."""
        if self._is_odd(0.05):
            return self._one(EXTREMES)
        condition, kind = self.condition(), self._chance.random()
        text = condition if kind < 0.5 else f"WHERE {condition}"
        if kind >= 0.6:
            selected = self._one(SELECTED) if self._is_odd(0.5) else "COUNT(*)"
            source = self._one(SOURCES) if self._is_odd(0.5) else " FROM people"
            ending = self._one(ENDINGS) if self._is_odd(0.5) else ""
            text = f"SELECT {selected}{source} WHERE {condition}{ending}"
        if self._is_odd(0.2):
            place = self._chance.randrange(len(text) + 1)
            text = text[:place] + self._one(STRAYS) + text[place:]
        return text

    def condition(self, depth: int = 0) -> str:
        """Return a condition of comparisons joined and nested at random."""
        kind = self._chance.random()
        if depth > 4 or kind < 0.5:
            return self._comparison()
        if kind < 0.6:
            return f"NOT {self.condition(depth + 1)}"
        if kind < 0.7:
            return f"({self.condition(depth + 1)})" if not self._is_odd(0.1) else f"({self.condition(depth + 1)}"
        word = self._one(("XOR", ",", "&&", "||", "")) if self._is_odd(0.05) else self._one(("AND", "OR", "and", "Or"))
        return f"{self.condition(depth + 1)} {word} {self.condition(depth + 1)}"

    def _comparison(self) -> str:
        name = self._one(ODD_NAMES) if self._is_odd(0.2) else self._one(NAMES)
        known = next((known for known in SUITED if known in name.lower()), "age")
        no, kind = self._one(("", "", "NOT ")), self._chance.random()
        if kind < 0.15:
            return f"{name} {no}IN ({', '.join(self._value(known) for _ in range(self._chance.randint(1, 4)))})"
        if kind < 0.3 and known not in ("job", "well"):
            return f"{name} {no}BETWEEN {self._value(known)} AND {self._value(known)}"
        if kind < 0.4:
            return f"{name} IS {no}NULL" if not self._is_odd(0.5) else f"{name} IS {no}{self._value(known)}"
        if kind < 0.45:
            return self._one(("TRUE", "FALSE", "NULL", "1 = 1", "1 < 0"))
        if self._is_odd(0.1):
            value = self._value(known)
            form = self._one(ODD_FORMS)
            return form.format(name=name, value=value)
        signs = ("=", "<>", "!=") if known in ("job", "well") else SIGNS
        sign = self._one(ODD_SIGNS) if self._is_odd(0.2) else self._one(signs)
        sides = (name, self._value(known))
        return f" {sign} ".join(sides if self._chance.random() < 0.8 else reversed(sides))

    def _value(self, known: str) -> str:
        if self._is_odd(0.5):
            return self._one(self._one((WHOLE, OTHER_NUMBERS, OTHER_NUMBERS, DATES, TEXTS, ODDITIES)))
        return self._one(SUITED[known])

    def _is_odd(self, share: float) -> bool:
        return self._chance.random() < share * self._oddness

    def _one(self, choices: Sequence[str]) -> str:
        return self._chance.choice(choices)
