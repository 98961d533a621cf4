"""Codebooks become hierarchies in the order of the file, and what is wrong with one is told in one sentence."""

import json
import random
from pathlib import Path

import pytest

import veilcube as vc
from support.command_line import caller
from veilcube.errors import SchemaError, VeilcubeError

ICD = """code,parent,label
I,,Circulatory
I10,I,Hypertension
I20,I,Angina
E,,Endocrine
E1,E,Diabetes
E10,E1,
E78,E,
"""
CHAIN = "".join(f"c{number},{f'c{number - 1}' if number else ''}\n" for number in range(5000))


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    return tmp_path


def refusal(text: str | bytes, **settings: object) -> str:
    Path("book.csv").write_bytes(text if isinstance(text, bytes) else text.encode())
    with pytest.raises(SchemaError) as problem:
        vc.codebook("book.csv", **settings)
    assert "\n" not in str(problem.value)
    return str(problem.value)


def test_parents_make_groups_and_the_others_values(folder: Path) -> None:
    Path("icd.csv").write_text(ICD)
    spec = vc.codebook("icd.csv")
    assert spec == {"I": ["I10", "I20"], "E": [{"E1": ["E10"]}, "E78"]}
    attribute = vc.Nominal("diagnosis", hierarchy=spec)
    assert attribute.values == ("I10", "I20", "E10", "E78")
    assert attribute.cells_of("E") == (2, 4)


def test_levels_make_the_same_hierarchy(folder: Path) -> None:
    Path("wide.csv").write_text("chapter;block;icd\nI;;I10\nI;;I20\nE;E1;E10\nE;;E78\n")
    Path("icd.csv").write_text(ICD)
    assert vc.codebook("wide.csv", levels=["chapter", "block", "icd"]) == vc.codebook("icd.csv")


@pytest.mark.parametrize("seed", range(10))
def test_any_tree_is_read_back_whatever_the_order_of_its_rows(folder: Path, seed: int) -> None:
    chance = random.Random(seed)
    parents = {"g0": ""}
    for number in range(1, 40):
        parents[f"g{number}"] = chance.choice(["", *parents])
    leaves = {f"v{number}": name for number, name in enumerate(parents)}
    rows = [*parents.items(), *leaves.items()]
    chance.shuffle(rows)
    Path("t.csv").write_text("\ufeffparent\tcode\n" + "".join(f"{parent}\t{code}\n" for code, parent in rows), "utf-8")
    attribute = vc.Nominal("x", hierarchy=vc.codebook("t.csv"))
    assert set(attribute.values) == set(leaves)
    for group in parents:
        below = {leaf for leaf, at in leaves.items() if group in ancestors(at, parents)}
        first, end = attribute.cells_of(group)
        assert set(attribute.values[first:end]) == below


def ancestors(name: str, parents: dict[str, str]) -> set[str]:
    return {name} | (ancestors(parents[name], parents) if parents[name] else set())


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("code,parent\nA,B\nB,A\n", "goes in a circle, A in B in A; correct one of the parents"),
        ("code,parent\nA,A\n", "goes in a circle, A in A"),
        ("code,parent\nA,\nB,A\nC,D\nD,E\nE,C\n", "goes in a circle, C in D in E in C"),
        ("code,parent\nA,\nI10,A\nI10,A\n", "'I10' is in the codebook book.csv twice, on lines 3 and 4; keep one"),
        (
            "code,parent\nCirc,\nI10,Cric\n",
            "'Cric' of 'I10', on line 3 of the codebook book.csv, is no code of it; did",
        ),
        ("code,parent\nA,\nB,A\n,A\n", "line 4 of the codebook book.csv has no code"),
        ("code,parent\n", "has no rows"),
        ("", "has no column 'code'"),
        ("cod,parent\nA,\n", "has no column 'code'; did you mean 'cod'? its columns are cod, parent"),
        ("code,code,parent\nA,A,\n", "has the column twice"),
        ("code,parent\nA,\nB,A\nC\n", "line 4 of the codebook book.csv has 1 fields and its header 2"),
        ('code,parent\nA,\nB,"A\n', "is no CSV"),
        (b"code,parent\nA,\n\xff,A\n", "no UTF-8 text"),
        ("code,parent\nA,\nB,\n", "'A' is in no group of the codebook book.csv, and a hierarchy has groups; list the"),
        ("code,parent\nA,\nB,A\nC,\n", "'C' is in no group of the codebook book.csv, and a hierarchy has groups; give"),
        (f"code,parent\n{CHAIN}", "deeper than 64 levels"),
    ],
)
def test_a_codebook_that_is_no_tree_is_refused_in_one_sentence(folder: Path, text: str | bytes, said: str) -> None:
    assert said in refusal(text)


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("a,b\nX,1\nX,1\n", "'1' is in the codebook book.csv twice, on lines 2 and 3"),
        ("a,b\nX,1\nY,X\n", "'X' is in the codebook book.csv twice"),
        ("a,b\nX,\n", "line 2 of the codebook book.csv has no 'b'"),
        ("a,c\nX,1\n", "has no column 'b'"),
    ],
)
def test_levels_that_make_no_tree_are_refused(folder: Path, text: str, said: str) -> None:
    assert said in refusal(text, levels=["a", "b"])


def test_a_group_under_two_others_is_refused_with_both_lines(folder: Path) -> None:
    said = refusal("a,b,c\nX,Other,1\nY,Other,2\n", levels=["a", "b", "c"])
    assert "the group 'Other' of the codebook book.csv is under 'X' on line 2 and under 'Y' on line 3" in said


@pytest.mark.parametrize("levels", ["a", ["a"], [], 5, ["a", 5], ["a", ""]])
def test_levels_that_are_no_list_of_columns_are_refused(folder: Path, levels: object) -> None:
    Path("book.csv").write_text("a,b\nX,1\n")
    with pytest.raises(VeilcubeError):
        vc.codebook("book.csv", levels=levels)


def test_a_codebook_that_is_not_there_is_refused(folder: Path) -> None:
    with pytest.raises(SchemaError, match=r"cannot read the codebook none\.csv \(No such file"):
        vc.codebook("none.csv")


def test_the_command_prints_an_attribute_for_a_schema_file(folder: Path, capfd: pytest.CaptureFixture[str]) -> None:
    Path("icd.csv").write_text(ICD)
    printed = caller(capfd)("schema", "hierarchy", "icd.csv", "--name", "diagnosis").out
    Path("s.toml").write_text(printed)
    assert vc.Schema.from_toml("s.toml")["diagnosis"].values == ("I10", "I20", "E10", "E78")
    facts = json.loads(caller(capfd)("schema", "hierarchy", "icd.csv", "--json").out)
    assert facts["cells"] == 4
    refused = caller(capfd)("schema", "hierarchy", "icd.csv", "--levels", "x,code")
    assert (refused.code, refused.err.count("\n")) == (SchemaError.exit_code, 1)
