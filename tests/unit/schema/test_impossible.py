import copy
import hashlib
import json
import pickle
import tomllib
from datetime import date, datetime
from fractions import Fraction
from itertools import product
from math import prod
from pathlib import Path

import numpy as np
import pytest

from veilcube.errors import CapacityError, SchemaError
from veilcube.query import Workload, read_query
from veilcube.schema import Nominal, Ordinal, Region, Schema
from veilcube.schema.impossible import MOST_ENTRIES

AGE = Ordinal("age", 0, 99, outside="clip")
INCOME = Ordinal("income", edges=[0, 10_000, 20_000, 50_000], missing="cell")
ADMITTED = Ordinal("admitted", "2023", "2024", unit="month")
SEX = Nominal("sex", ["Female", "Male"], outside="other")
JOB = Nominal("job", hierarchy={"Care": ["Nurse", "Aide"], "Office": {"Law": ["Judge"], "IT": ["Dev", "Ops"]}})
CODE = Nominal("code", [1, 2, True], missing="cell")
DAY = Ordinal("day", "2024-01-01", "2024-03-01")
ATTRIBUTES = [AGE, INCOME, ADMITTED, SEX, JOB, CODE, DAY]
ENTRIES = [
    {"sex": "Male", "job": "Nurse"},
    {"age": (0, 14), "job": ["Office", "Aide"]},
    {"age": [3, (90, None), 5.0], "income": (10_000, 50_000)},
    {"admitted": (None, "2023-02"), "income": None},
    {"day": [date(2024, 1, 31), "2024-02"], "sex": "Male"},
    {"code": {2, True, None}, "age": (-np.inf, 3.5)},
]


def _schema(*entries: object) -> Schema:
    return Schema(ATTRIBUTES, impossible=entries)


def _bits(count: int) -> list[Nominal]:
    return [Nominal(f"bit {number}", [0, 1]) for number in range(count)]


class TestEntries:
    def test_there_are_none_by_default(self) -> None:
        assert Schema(ATTRIBUTES).impossible == ()
        assert Schema(ATTRIBUTES).impossible_boxes == ()
        assert Schema(ATTRIBUTES, impossible=[]) == Schema(ATTRIBUTES)

    def test_they_come_back_as_mappings_that_cannot_be_changed(self) -> None:
        entries = _schema({"sex": "Male", "job": "Nurse"}, {"age": (0, 14), "job": ["Aide", "Office"]}).impossible
        assert isinstance(entries, tuple)
        assert [dict(entry) for entry in entries] == [
            {"sex": "Male", "job": "Nurse"},
            {"age": (0, 14), "job": frozenset({"Office", "Aide"})},
        ]
        with pytest.raises(TypeError):
            entries[0]["sex"] = "Female"

    def test_any_iterable_of_any_mappings_will_do(self) -> None:
        entries = _schema({"sex": "Male", "job": "Nurse"}).impossible
        assert Schema(ATTRIBUTES, impossible=iter(entries)) == Schema(ATTRIBUTES, impossible=entries)

    def test_what_they_were_made_from_may_change_afterwards(self) -> None:
        jobs = ["Nurse"]
        schema = _schema({"sex": "Male", "job": jobs})
        jobs.append("Judge")
        assert dict(schema.impossible[0]) == {"sex": "Male", "job": "Nurse"}

    @pytest.mark.parametrize(
        ("one", "other"),
        [
            ({"AGE": 3, "Sex": "Male"}, {"sex": "Male", "age": 3}),
            ({"age": 3.0}, {"age": np.int64(3)}),
            ({"age": [5, 3, 5]}, {"age": {3, 5}}),
            ({"age": [3]}, {"age": 3}),
            ({"age": np.array([3, 5])}, {"age": [[3], [[5]]]}),
            ({"age": (5, np.inf)}, {"age": (5, None)}),
            ({"age": (-(10**400), 5)}, {"age": (None, Fraction(5))}),
            ({"age": (5, None)}, {"age": {"low": 5}}),
            ({"age": (5, 7)}, {"age": {"high": 7, "low": 5}}),
            ({"income": None}, {"income": {"missing": True}}),
            ({"day": date(2024, 1, 1)}, {"day": " 2024-01-01 "}),
            ({"admitted": (datetime(2023, 2, 1), None)}, {"admitted": ("2023-02-01", None)}),
            ({"code": 1.0}, {"code": "1"}),
            ({"job": ("Nurse", "Aide")}, {"job": ["Aide", "Nurse"]}),
        ],
    )
    def test_one_meaning_has_one_spelling(self, one: dict[str, object], other: dict[str, object]) -> None:
        schemas = [_schema(entry) for entry in (one, other)]
        assert schemas[0] == schemas[1]
        assert hash(schemas[0]) == hash(schemas[1])
        assert schemas[0].fingerprint() == schemas[1].fingerprint()
        assert schemas[0].to_toml() == schemas[1].to_toml()

    def test_they_tell_schemas_apart(self) -> None:
        schemas = [
            _schema(),
            _schema({"sex": "Male", "job": "Nurse"}),
            _schema({"sex": "Male", "job": "Aide"}),
            _schema({"sex": "Male"}),
            _schema({"sex": "Male"}, {"job": "Nurse"}),
            _schema({"job": "Nurse"}, {"sex": "Male"}),
        ]
        for one, other in product(schemas, repeat=2):
            assert (one == other) == (one is other)
            assert (one.fingerprint() == other.fingerprint()) == (one is other)
        assert len({*schemas}) == len(schemas)

    def test_the_repr_says_how_many_there_are(self) -> None:
        bits = _bits(2)
        assert repr(Schema(bits)) == "Schema(bit 0 (2) x bit 1 (2): 4 cells)"
        one = {"bit 0": 0, "bit 1": 0}
        assert repr(Schema(bits, impossible=[one])).endswith(": 4 cells, 1 impossible combination)")
        assert repr(Schema(bits, impossible=[one, one])).endswith(": 4 cells, 2 impossible combinations)")

    def test_copies_are_equal(self) -> None:
        schema = Schema(ATTRIBUTES, impossible=ENTRIES)
        assert pickle.loads(pickle.dumps(schema)) == schema
        assert copy.deepcopy(schema) == schema


class TestBoxes:
    def test_attributes_that_an_entry_does_not_name_are_chosen_whole(self) -> None:
        schema = Schema([Ordinal("age", 0, 3), SEX, Nominal("job", ["Nurse"])], impossible=[{"age": (1, 2)}])
        age, sex, job = schema.impossible_boxes[0]
        assert age.tolist() == [False, True, True, False]
        assert sex.tolist() == [True, True, True]
        assert job.tolist() == [True]
        assert age.dtype == sex.dtype == np.bool_

    @pytest.mark.parametrize("entry", ENTRIES, ids=str)
    def test_an_entry_means_what_a_query_of_its_words_means(self, entry: dict[str, object]) -> None:
        schema = _schema(entry)
        boxes = read_query(schema, entry).boxes
        assert len(boxes) == 1
        for axis, mask in enumerate(schema.impossible_boxes[0]):
            assert np.array_equal(mask, boxes[0].mask(axis))

    def test_they_can_be_asked_as_they_are(self) -> None:
        schema = Schema(ATTRIBUTES, impossible=ENTRIES)
        assert len(Workload(schema, schema.impossible)) == len(ENTRIES)
        for entry, box in zip(schema.impossible, schema.impossible_boxes, strict=True):
            assert read_query(schema, entry).cells == prod(np.count_nonzero(mask) for mask in box)

    def test_no_mask_can_be_written_to(self) -> None:
        for mask in _schema({"sex": "Male", "job": "Nurse"}).impossible_boxes[0]:
            with pytest.raises(ValueError, match="read-only"):
                mask[0] = False

    def test_an_endless_attribute_costs_nothing_until_masks_are_asked_for(self) -> None:
        schema = Schema([Ordinal("number", 0, 2**52), SEX], impossible=[{"number": (5, None), "sex": "Male"}])
        assert Schema.from_dict(schema.to_dict()) == schema
        with pytest.raises(CapacityError, match="listing impossible combinations over"):
            _ = schema.impossible_boxes


class TestRefusals:
    @pytest.mark.parametrize(
        ("entries", "problem"),
        [
            ({"sex": "Male"}, "impossible is a list of mappings such as"),
            ("sex", "impossible is a list of mappings such as"),
            (None, "impossible is a list of mappings such as"),
            (["sex"], "impossible combination 1: it is no mapping from attributes to values"),
            ([{"sex": "Male"}, {}], "impossible combination 2: it names no attribute; name at least one"),
            ([{"weight": 3}], "impossible combination 1: there is no attribute 'weight'; the schema has age, income"),
            ([{5: 3}], "there is no attribute '5'"),
            ([{"sex": "male"}], "'sex' has no value or group 'male'; did you mean 'Male'"),
            ([{"job": ["Nurse", "Doctor"]}], "'job' has no value or group 'Doctor'"),
            ([{"age": 120}], "'age' has no cell for 120; its domain is 0..99"),
            ([{"age": (30, 20)}], r"the range \(30, 20\) on 'age' is inverted"),
            ([{"age": (np.inf, None)}], "is inverted or outside the domain"),
            ([{"age": (1, 2, 3)}], r"a range on 'age' is a pair \(low, high\)"),
            ([{"age": True}], "a value of the wrong type"),
            ([{"age": np.nan}], "a value of the wrong type"),
            ([{"age": "3"}], "a value of the wrong type"),
            ([{"age": []}], "the list of values for 'age' is empty; list at least one"),
            ([{"age": [[]]}], "the list of values for 'age' is empty; list at least one"),
            ([{"age": None}], "'age' has no cell for missing values"),
            ([{"age": {"low": 3, "hihg": 5}}], "a table holds low and high, or missing = true"),
            ([{"income": {"missing": False}}], "a table holds low and high, or missing = true"),
            ([{"job": {"low": "Nurse"}}], "its values have no order; list them"),
            ([{"income": (0, 15_000)}], r"15000 cuts through the bin \[10000, 20000\)"),
            ([{"admitted": "2024-02-03"}], "cuts through a month"),
            ([{"admitted": datetime(2024, 1, 1, 12)}], "a time of day cuts through a day"),
            ([{"sex": "Male", "SEX": "Female"}], "it names 'sex' twice; name each attribute once"),
        ],
    )
    def test_entries_that_say_nothing_are_refused_in_one_sentence(self, entries: object, problem: str) -> None:
        with pytest.raises(SchemaError, match=problem) as refused:
            Schema(ATTRIBUTES, impossible=entries)
        assert "\n" not in str(refused.value)

    def test_a_list_inside_itself_is_refused(self) -> None:
        endless: list[object] = []
        endless.append(endless)
        with pytest.raises(SchemaError, match="lists inside lists without end"):
            _schema({"age": endless})

    def test_a_thousand_entries_are_read_and_no_more(self) -> None:
        entry = {"sex": "Male", "job": "Nurse"}
        assert len(Schema(ATTRIBUTES, impossible=[entry] * MOST_ENTRIES).impossible) == 1000
        with pytest.raises(SchemaError, match="at most 1,000 impossible combinations"):
            Schema(ATTRIBUTES, impossible=[entry] * (MOST_ENTRIES + 1))

    @pytest.mark.parametrize(
        "entry", [{"job": ["Care", "Office"]}, {"age": (0, 99)}, {"job": ["Care", "Office"], "age": (None, None)}]
    )
    def test_an_entry_that_forbids_every_cell_is_refused(self, entry: dict[str, object]) -> None:
        with pytest.raises(SchemaError, match="impossible combination 2 forbids every cell of the cube"):
            _schema({"sex": "Male"}, entry)

    def test_the_cells_of_stray_values_stay_possible(self) -> None:
        assert not _schema({"sex": ["Female", "Male"]}).impossible_boxes[0][3][2]

    def test_entries_that_leave_no_value_of_an_attribute_are_refused(self) -> None:
        entries = [{"age": (0, 49)}, {"sex": "Male"}, {"age": (60, None), "job": ["Care", "Office"]}]
        assert len(_schema(*entries, {"age": (51, 59)}).impossible) == 4
        with pytest.raises(SchemaError, match="leave no possible value of 'age'; leave one of them out"):
            _schema(*entries, {"age": (50, 59)})

    def test_entries_that_leave_no_value_of_a_huge_attribute_are_refused(self) -> None:
        with pytest.raises(SchemaError, match="leave no possible value of 'number'"):
            Schema([Ordinal("number", 0, 2**52)], impossible=[{"number": (7, None)}, {"number": (0, 6)}])

    def test_entries_that_together_forbid_every_cell_are_refused(self) -> None:
        all_four = [{"bit 3": one, "bit 7": other} for one, other in product((0, 1), repeat=2)]
        assert len(Schema(_bits(20), impossible=all_four[:3]).impossible) == 3
        with pytest.raises(SchemaError, match="together forbid every cell of the cube; leave one of them out"):
            Schema(_bits(20), impossible=all_four)

    def test_a_cube_of_too_many_kinds_of_cells_is_taken_as_it_is(self) -> None:
        all_four = [{"bit 0": one, "bit 1": other} for one, other in product((0, 1), repeat=2)]
        pairs = [{f"bit {number}": 0, f"bit {number + 1}": 1} for number in range(2, 20)]
        assert len(Schema(_bits(21), impossible=all_four + pairs).impossible) == 22
        with pytest.raises(SchemaError, match="together forbid every cell"):
            Schema(_bits(21), impossible=all_four + pairs[:-1])

    def test_whether_a_cell_is_left_is_told_as_by_listing_all_cells(self) -> None:
        draw = np.random.default_rng(5)
        attributes = [Ordinal("a", 0, 2), Ordinal("b", 0, 3), Nominal("c", ["x", "y"]), Nominal("d", ["x", "y"])]
        outcomes = []
        for _ in range(300):
            entries: list[dict[str, object]] = []
            for _ in range(draw.integers(2, 14)):
                named = draw.permutation(4)[: draw.integers(2, 4)]
                low = draw.integers(0, [3, 4, 2, 2])
                values = {"a": (int(low[0]), None), "b": (None, int(low[1])), "c": "xy"[low[2]], "d": "xy"[low[3]]}
                entries.append({"abcd"[axis]: values["abcd"[axis]] for axis in named})
            everywhere = Region.nothing((3, 4, 2, 2)).union(*(read_query(Schema(attributes), one) for one in entries))
            outcomes.append((_is_refused(attributes, entries), everywhere.mask().all()))
        assert all(refused == full for refused, full in outcomes)
        assert 30 < sum(refused for refused, _ in outcomes) < 270


def _is_refused(attributes: list[Nominal | Ordinal], entries: list[dict[str, object]]) -> bool:
    try:
        Schema(attributes, impossible=entries)
    except SchemaError:
        return True
    return False


class TestFiles:
    def test_a_schema_without_entries_is_written_as_before_there_were_any(self) -> None:
        # Both digests come from commit a7571bb, which knew no entries.
        schema = Schema([Ordinal("age", 17, 90), Nominal("job", hierarchy={"Care": ["Nurse"], "Law": ["Judge"]})])
        assert list(schema.to_dict()) == ["attribute"]
        assert schema.fingerprint() == "df22f08e3b07c89a"
        assert hashlib.sha256(schema.to_toml().encode()).hexdigest()[:16] == "bcf988b1407eb75a"

    def test_entries_come_back_from_their_file(self, tmp_path: Path) -> None:
        schema = Schema(ATTRIBUTES, impossible=ENTRIES)
        path = tmp_path / "schema.toml"
        schema.to_toml(path)
        again = Schema.from_toml(path)
        assert again == schema
        assert again.fingerprint() == schema.fingerprint()
        assert again.impossible == schema.impossible
        for ours, theirs in zip(schema.impossible_boxes, again.impossible_boxes, strict=True):
            assert all(np.array_equal(one, other) for one, other in zip(ours, theirs, strict=True))

    def test_plain_data_passes_through_json(self) -> None:
        schema = Schema(ATTRIBUTES, impossible=ENTRIES)
        text = json.dumps(schema.to_dict(), allow_nan=False)
        assert Schema.from_dict(json.loads(text)) == schema
        assert Schema.from_dict(json.loads(text)).fingerprint() == schema.fingerprint()

    def test_the_file_says_what_a_person_would_write(self) -> None:
        schema = _schema(
            {"job": "Nurse", "sex": "Male"},
            {"age": [(0, 14), 99], "job": ["Office", "Aide"]},
            {"income": [None, (0, 10_000)]},
        )
        assert schema.to_toml() == Schema(ATTRIBUTES).to_toml() + (
            '\n[[impossible]]\nsex = "Male"\njob = "Nurse"\n'
            '\n[[impossible]]\nage = [{low = 0, high = 14}, 99]\njob = ["Aide", "Office"]\n'
            "\n[[impossible]]\nincome = [{low = 0, high = 10000}, {missing = true}]\n"
        )

    def test_reads_what_a_person_may_write(self, tmp_path: Path) -> None:
        path = tmp_path / "schema.toml"
        path.write_text(
            Schema(ATTRIBUTES).to_toml()
            + """
            [[impossible]]
            Sex = "Male"
            job = ["Nurse", "Office"]
            age.low = 90

            [[impossible]]
            admitted = {low = 2023-01-01, high = "2023-02"}
            code = true

            [[impossible]]
            sex = "Female"
            [impossible.income]
            low = 0
            high = 20_000
            """
        )
        assert Schema.from_toml(path) == _schema(
            {"sex": "Male", "job": ["Nurse", "Office"], "age": (90, None)},
            {"admitted": (date(2023, 1, 1), "2023-02"), "code": True},
            {"sex": "Female", "income": (0, 20_000)},
        )

    @pytest.mark.parametrize(
        "name", ["with space", "dot.ted", 'quo"ted', "new\nline", "ünï 😀", "# no", "[t]", "a = 1"]
    )
    def test_awkward_names_and_values_come_back(self, name: str) -> None:
        attributes = [Nominal(name, [name, "x", "y"]), Nominal("other", [f"{name}!", f"{name}?", "z"])]
        schema = Schema(attributes, impossible=[{name: name, "other": [f"{name}!", f"{name}?"]}])
        assert Schema.from_dict(tomllib.loads(schema.to_toml())) == schema

    @pytest.mark.parametrize(
        ("text", "problem"),
        [
            ('[impossible]\nsex = "Male"', r"begin each with \[\[impossible\]\]"),
            ('impossible = "Male"', r"begin each with \[\[impossible\]\]"),
            ("impossible = [3]", "impossible combination 1: it is no mapping"),
            ("[[impossible]]", "impossible combination 1: it names no attribute"),
            ('[[impossible]]\nsex = "Mael"', "did you mean 'Male'"),
            ("[[impossible]]\nage = 07:30:00", "a value of the wrong type"),
        ],
    )
    def test_refuses_files_whose_entries_are_none(self, text: str, problem: str, tmp_path: Path) -> None:
        path = tmp_path / "schema.toml"
        path.write_text(f"{text}\n{Schema(ATTRIBUTES).to_toml()}")
        with pytest.raises(SchemaError, match=problem):
            Schema.from_toml(path)
