"""What is read: lines, JSON, CSV, whole files."""

import io

import pytest

from kaspar.cli.producing.reading import BadEntry, Entry, InputFormat, format_of, read_entries


def _read(text: str | bytes, form: InputFormat, **options: str | bool) -> list[Entry | BadEntry]:
    data = text if isinstance(text, bytes) else text.encode()
    return list(read_entries(io.BytesIO(data), form, **options))  # type: ignore[arg-type]


def _texts(entries: list[Entry | BadEntry]) -> list[str | None]:
    return [entry.text for entry in entries if isinstance(entry, Entry)]


def test_lines_end_with_either_line_end_or_none() -> None:
    assert _read("a\r\n\nlast", InputFormat.LINES) == [
        Entry("line 1", "a"),
        Entry("line 2", ""),
        Entry("line 3", "last"),
    ]


def test_bytes_that_are_no_text_are_kept() -> None:
    (text,) = _texts(_read(b"\xff\xfea\n", InputFormat.LINES))
    assert text is not None
    assert text.encode(errors="surrogateescape") == b"\xff\xfea"


def test_place_names_the_file() -> None:
    (entry,) = _read("a", InputFormat.LINES, name="orders.txt")
    assert entry.place == "orders.txt, line 1"


def test_json_lines_go_on_behind_a_bad_one() -> None:
    good, bad, last = _read('{"a":  1}\n\n{oops\n17\n', InputFormat.JSON)
    assert good == Entry("line 1", '{"a":  1}', {"a": 1})
    assert isinstance(bad, BadEntry)
    assert bad.place == "line 3"
    assert bad.reason.startswith("not JSON: ")
    assert last == Entry("line 4", "17", 17)


@pytest.mark.parametrize("text", ['[{"a": 1}, [2]]', '[\n  {"a": 1},\n  [2]\n]\n'])
def test_json_array_has_a_record_for_each_element(text: str) -> None:
    assert _read(text, InputFormat.JSON) == [
        Entry("element 1", '{"a": 1}', {"a": 1}),
        Entry("element 2", "[2]", [2]),
    ]


def test_array_without_end_is_one_bad_entry() -> None:
    (entry,) = _read('[\n{"a": 1},\n', InputFormat.JSON)
    assert isinstance(entry, BadEntry)
    assert entry.place == "the array"


def test_csv_rows_become_objects() -> None:
    rows = _read('\ufeffid,name\n1,"Ada, L."\n\n2,"two\nlines"\n', InputFormat.CSV)
    assert rows == [
        Entry("line 2", '{"id": "1", "name": "Ada, L."}', {"id": "1", "name": "Ada, L."}),
        Entry("line 5", '{"id": "2", "name": "two\\nlines"}', {"id": "2", "name": "two\nlines"}),
    ]


def test_csv_numbers_only_if_asked_and_only_if_they_are_written_as_numbers() -> None:
    (entry,) = _read("a;b;c;d;e;f;g\n1;1.50;007;-2;;1e5;+1\n", InputFormat.CSV, delimiter=";", numbers=True)
    assert isinstance(entry, Entry)
    assert list(entry.fields.values()) == [1, 1.5, "007", -2, "", "1e5", "+1"]


def test_csv_row_with_another_number_of_cells_is_bad() -> None:
    rows = _read("a,b\n1\n1,2\n1,2,3\n", InputFormat.CSV)
    assert [row.place for row in rows if isinstance(row, BadEntry)] == ["line 2", "line 4"]
    assert _texts(rows) == ['{"a": "1", "b": "2"}']


def test_csv_with_two_columns_of_one_name_is_bad() -> None:
    assert _read("id,name,id\n1,Ada,2\n", InputFormat.CSV) == [BadEntry("line 1", "several columns are called 'id'")]


@pytest.mark.parametrize("cell", ["NaN", "Infinity", "-Infinity", "nan", f"{'9' * 400}.5"])
def test_csv_number_that_json_does_not_have_stays_text(cell: str) -> None:
    (entry,) = _read(f"a\n{cell}\n", InputFormat.CSV, numbers=True)
    assert isinstance(entry, Entry)
    assert entry.fields == {"a": cell}


@pytest.mark.parametrize("text", ["NaN", '{"a": -Infinity}', "1e999", "[" * 100_000], ids=lambda text: text[:20])
def test_json_that_only_python_would_read_is_bad(text: str) -> None:
    (entry,) = _read(f"{text}\n", InputFormat.JSON)
    assert isinstance(entry, BadEntry)
    assert entry.reason.startswith("not JSON: ")


def test_csv_with_an_open_quote_is_bad() -> None:
    rows = _read('a,b\n1,2\n"x,3\n', InputFormat.CSV)
    assert _texts(rows) == ['{"a": "1", "b": "2"}']
    assert isinstance(rows[-1], BadEntry)


def test_whole_input_is_one_record() -> None:
    assert _read("a\nb\n", InputFormat.WHOLE, name="x.txt") == [Entry("x.txt", "a\nb\n")]


def test_format_follows_the_name_of_the_file() -> None:
    names = {"a.csv": "csv", "a.JSON": "json", "a.jsonl": "json", "b.ndjson": "json", "a.txt": "lines", "a": "lines"}
    assert {name: format_of(name).value for name in names} == names
