"""Strict RFC 4180: what is well-formed is read like any good reader reads it, and nothing else is read at all."""

import csv
import gzip
import io
import random
from pathlib import Path

import numpy as np
import pytest

from veilcube.curator.counting import count
from veilcube.curator.tables import csv_files as csv_rows
from veilcube.curator.tables.csv_files import CsvRows, read_layout
from veilcube.errors import TableError
from veilcube.schema import Nominal, Ordinal, Schema

AGE = Schema([Ordinal("age", 0, 99, missing="cell")])


def fields_of(path: Path, *names: str) -> list[tuple[str, ...]]:
    table = CsvRows(read_layout(path, names), [path], names).stream().read_all()
    return list(zip(*(column.to_pylist() for column in table.columns), strict=True))


def written(folder: Path, text: str | bytes) -> Path:
    path = folder / "t.csv"
    path.write_bytes(text.encode() if isinstance(text, str) else text)
    return path


class TestTheSwallowedTable:
    def test_a_quote_that_only_a_later_row_closes_is_one_field_and_its_absence_is_refused(self, tmp_path: Path) -> None:
        rows = "30,5'11\n" * 5_000 + "41,5'11\"\n"
        without = written(tmp_path, "age,height\n" + rows)
        with pytest.raises(TableError, match=r"line 5,002 of the file .*t\.csv has a quote inside a field"):
            count(without, AGE)

    @pytest.mark.parametrize(
        ("rows", "line", "words"),
        [
            ('1,a\n2,b"c\n', 3, "a quote inside a field"),
            ('1,a\n2, "b"\n', 3, "a quote inside a field"),
            ('1,"a"b\n', 2, "text after the closing quote"),
            ('1,"a" \n', 2, "text after the closing quote"),
            ('1,a\n2,"b\n3,c\n', 3, "never closed"),
            ('1,"a\nb\nc"\n2,"\n', 5, "never closed"),
            ("1,a\n2,b,c\n", 3, "more or fewer fields"),
            ("1,a\n2\n", 3, "more or fewer fields"),
            ("1,a\n \n", 3, "more or fewer fields"),
            ("1,a\r2,b\n", 2, "a line end unlike the header's"),
        ],
    )
    def test_what_is_not_well_formed_is_refused_with_its_line(
        self, tmp_path: Path, rows: str, line: int, words: str
    ) -> None:
        with pytest.raises(TableError, match=f"line {line} of the file .*{words}"):
            count(written(tmp_path, "age,x\n" + rows), AGE)

    def test_a_row_without_end_is_refused_before_it_fills_the_memory(
        self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr(csv_rows, "BYTES_PER_CHUNK", 2**10)
        monkeypatch.setattr(csv_rows, "LONGEST_RECORD", 2**12)
        with pytest.raises(TableError, match=r"line 3 of the file .* begins a row of more than"):
            count(written(tmp_path, 'age,x\n1,a\n2,"' + "30,1\n" * 10_000 + '"\n'), AGE)


class TestWellFormedFiles:
    @pytest.mark.parametrize("end", ["\n", "\r\n", "\r"])
    @pytest.mark.parametrize("delimiter", [",", ";", "\t", "|"])
    @pytest.mark.parametrize("chunk", [7, 64, 2**21])
    def test_are_read_as_the_standard_library_reads_them(
        self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, end: str, delimiter: str, chunk: int
    ) -> None:
        monkeypatch.setattr(csv_rows, "BYTES_PER_CHUNK", chunk)
        draw = random.Random(f"{end}{delimiter}{chunk}")
        pieces = ["a", "1", '"', '""', ",", ";", "\n", "\r\n", "\r", " ", "é", "\t", "|", "日本", "\x00", "'"]
        texts = ["".join(draw.choices(pieces, k=draw.randint(0, 4))) for _ in range(300)]
        rows = [tuple(texts[place : place + 3]) for place in range(0, 300, 3)]
        text = io.StringIO(newline="")
        csv.writer(text, delimiter=delimiter, lineterminator=end, quoting=csv.QUOTE_ALL).writerows(
            [("one", "two", "three"), *rows]
        )
        path = written(tmp_path, text.getvalue())
        assert fields_of(path, "one", "two", "three") == rows
        assert fields_of(path, "three", "one") == [(three, one) for one, _, three in rows]

    def test_need_no_line_end_after_the_last_row(self, tmp_path: Path) -> None:
        for text in ('a,b\n1,"2"', "a,b\n1,2", 'a,b\r\n1,2\r\n\r\n\r\n"1",2', "a,b\n\n1,2\n\n", "\ufeffa,b\n1,2\n"):
            assert set(fields_of(written(tmp_path, text), "a", "b")) == {("1", "2")}

    def test_of_one_column_have_rows_that_are_blank_lines(self, tmp_path: Path) -> None:
        assert fields_of(written(tmp_path, 'age\n1\n\n""\n2\n'), "age") == [("1",), ("",), ("",), ("2",)]

    @pytest.mark.parametrize("packed", [False, True])
    def test_of_many_megabytes_with_line_ends_in_quotes_are_read(self, tmp_path: Path, packed: bool) -> None:
        rows = 700_000
        text = b"age,note\n" + b'7,"first line\nsecond ""line"", with\r\nmore"\n8,plain\n' * (rows // 2)
        assert len(text) > 2 * 8 * 2**20
        path = tmp_path / "t.csv.gz"
        path.write_bytes(gzip.compress(text, 1) if packed else text)
        if not packed:
            path = path.rename(tmp_path / "t.csv")
        counts = count(path, AGE).exact_counts
        assert counts[7] == counts[8] == rows // 2
        assert counts.sum() == rows


def test_a_name_of_private_rows_is_not_shown(tmp_path: Path) -> None:
    path = written(tmp_path, 'age,"height\n52,CANARY7741\n41,x"\n')
    with pytest.raises(TableError) as caught:
        count(path, Schema([Ordinal("age", 0, 99), Nominal("height", ["tall"])]))
    assert "CANARY" not in str(caught.value)


def test_rows_do_not_depend_on_where_chunks_end(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = written(tmp_path, 'age,x\r\n1,"a""b"\r\n2,\r\n"3","c\r\nd"\r\n')
    expected = [("1", 'a"b'), ("2", ""), ("3", "c\r\nd")]
    for size in range(1, 40):
        monkeypatch.setattr(csv_rows, "BYTES_PER_CHUNK", size)
        assert fields_of(path, "age", "x") == expected


def test_texts_that_are_not_utf8_are_refused(tmp_path: Path) -> None:
    with pytest.raises(TableError, match="UTF-8"):
        count(written(tmp_path, b"age,x\n" + b"1,a\n" * 2**19 + b"\xff,a\n"), AGE)


def test_counts_are_those_of_numpy_on_many_chunks(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(csv_rows, "BYTES_PER_CHUNK", 10_000)
    ages = np.random.default_rng(3).integers(0, 100, 20_000)
    path = written(tmp_path, "x,age,y\n" + "".join(f'"{age}\n",{age},\n' for age in ages))
    assert np.array_equal(count(path, AGE).exact_counts[:100], np.bincount(ages, minlength=100))
