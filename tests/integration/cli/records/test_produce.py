"""`kaspar produce`: what is read becomes records, failures are reported, and how it is ended."""

import json
import signal
from pathlib import Path

import pytest

from tests.integration.cli.records.command import Kaspar

PATIENCE_S = 30.0


def _records(kaspar: Kaspar, topic: str) -> list[tuple[object, object]]:
    lines = kaspar.ok("consume", topic, "--json").lines
    return [(record.get("key"), record.get("value")) for record in map(json.loads, lines)]


def test_lines(kaspar_on_both: Kaspar) -> None:
    topic = kaspar_on_both.new_topic("lines")
    done = kaspar_on_both.ok("produce", topic, "--verbose", stdin="one\ntwo\n")
    assert done.lines == [f"{topic}/0@0", f"{topic}/0@1"]
    assert done.errors.startswith(f"2 records (6 B) to {topic} in ")
    assert _records(kaspar_on_both, topic) == [(None, "one"), (None, "two")]


def test_bytes_that_are_no_text_arrive_as_they_are(kaspar: Kaspar) -> None:
    topic = kaspar.new_topic("bytes")
    kaspar.write(topic, stdin=b"\xff\xfe\n")
    assert kaspar.ok("consume", topic, "-o", "hex").lines == ["fffe"]


def test_keys_headers_partition_timestamp_and_compression(kaspar_on_both: Kaspar) -> None:
    topic = kaspar_on_both.new_topic("options", partitions=3)
    options = ["-H", "a=1", "-H", "b", "-p", "2", "--timestamp", "2026-11-17T10:00Z", "-z", "zstd", "--acks", "1"]
    kaspar_on_both.ok("produce", topic, "--key-separator", ":", *options, stdin="k:v:w\n")
    (record,) = map(json.loads, kaspar_on_both.ok("consume", topic, "--json").lines)
    assert record == {
        "topic": topic,
        "partition": 2,
        "offset": 0,
        "timestamp": 1_794_909_600_000,
        "key": "k",
        "value": "v:w",
        "headers": [{"name": "a", "value": "1"}, {"name": "b", "value": None}],
    }


def test_files_by_their_names(kaspar: Kaspar, tmp_path: Path) -> None:
    topic = kaspar.new_topic("files")
    files = {
        "people.csv": "id,name\n1,Ada\n2,Bob\n",
        "people.json": '[\n{"id": 3},\n{"id": 4}\n]',
        "people.jsonl": '{"id": 5}\n{"id": 6}\n',
    }
    for name, text in files.items():
        (tmp_path / name).write_text(text)
    kaspar.write(topic, *(str(tmp_path / name) for name in files), "--key-field", "id", "--numbers")
    people = [{"id": 1, "name": "Ada"}, {"id": 2, "name": "Bob"}, {"id": 3}, {"id": 4}, {"id": 5}, {"id": 6}]
    assert _records(kaspar, topic) == [(str(number), person) for number, person in enumerate(people, start=1)]


def test_key_column_and_value_column(kaspar: Kaspar) -> None:
    topic = kaspar.new_topic("columns")
    options = ["--input", "csv", "--delimiter", ";", "--key-field", "id", "--value-field", "name"]
    kaspar.write(topic, *options, stdin="id;name\n1;Ada\n")
    assert _records(kaspar, topic) == [("1", "Ada")]


def test_tombstone(kaspar: Kaspar) -> None:
    topic = kaspar.new_topic("tombstones")
    kaspar.write(topic, "-k", "ada", "--value", "", "--tombstone")
    kaspar.write(topic, "--key-separator", ":", "--tombstone", stdin="bob:\ncy:x\n")
    assert _records(kaspar, topic) == [("ada", None), ("bob", None), ("cy", "x")]


def test_consumed_records_can_be_produced_again(kaspar: Kaspar) -> None:
    first, second = kaspar.new_topic("first"), kaspar.new_topic("second")
    kaspar.write(first, "-k", "k", "-H", "h=1", stdin=b'{"a": 1}\n\xff\n')
    printed = kaspar.ok("consume", first, "--json").output
    kaspar.write(second, "--input", "records", stdin=printed)
    assert kaspar.ok("consume", second, "--json").output == printed.replace(first, second)


def test_copy_by_base64_keeps_every_byte(kaspar: Kaspar) -> None:
    first, second = kaspar.new_topic("first"), kaspar.new_topic("second")
    lines = b'{"a":   1.10, "a": 2}\n\xff\x00\n12345678901234567890.5\n'
    kaspar.write(first, stdin=lines)
    printed = kaspar.ok("consume", first, "--json", "--value-type", "base64").output
    kaspar.write(second, "--input", "records", "--value-type", "base64", stdin=printed)
    values = kaspar.ok("consume", second, "-o", "hex").lines
    assert b"".join(bytes.fromhex(value) + b"\n" for value in values) == lines


def test_template_is_repeated_by_its_seed(kaspar: Kaspar) -> None:
    template = '{"user": "{{name}}", "amount": {{float 1 100}}, "n": {{seq}}}'
    printed = []
    for topic in (kaspar.new_topic("drawn"), kaspar.new_topic("drawn")):
        kaspar.write(topic, "--template", template, "-n", "50", "--seed", "7", "--key", "{{choice a b}}")
        printed.append(kaspar.ok("consume", topic, "-o", "key-value").output)
    assert printed[0] == printed[1]
    values = [json.loads(line.split("\t")[1]) for line in printed[0].splitlines()]
    assert [value["n"] for value in values] == list(range(1, 51))
    assert len({value["user"] for value in values}) > 10


def test_template_of_a_file_with_a_key_field(kaspar: Kaspar, tmp_path: Path) -> None:
    topic = kaspar.new_topic("drawn")
    (tmp_path / "order.json").write_text('{"id": {{seq 10}}}\n')
    kaspar.write(topic, "--template", f"@{tmp_path / 'order.json'}", "-n", "2", "--key-field", "id")
    assert _records(kaspar, topic) == [("10", {"id": 10}), ("11", {"id": 11})]


def test_failed_records_are_told_with_their_lines_and_the_others_are_written(kaspar: Kaspar) -> None:
    topic = kaspar.new_topic("failures")
    big = json.dumps({"id": "big", "text": "x" * 2_000_000})
    lines = f'{{"id": 1}}\n{{oops\n{{"name": 2}}\n{big}\n{{"id": 5}}\n'
    done = kaspar.run("produce", topic, "--key-field", "id", "--json", stdin=lines)
    assert done.code == 1
    reports = done.errors.splitlines()
    assert reports[0].startswith("kaspar: line 2: not JSON: ")
    assert reports[1] == "kaspar: line 3: no field 'id'"
    assert reports[2].startswith("kaspar: line 4: ")
    assert "too large" in reports[2]
    summary = json.loads(done.output)
    assert (summary["delivered"], summary["failed"], summary["partitions"]) == (2, 3, {"0": 2})
    assert [key for key, _ in _records(kaspar, topic)] == ["1", "5"]


def test_record_that_the_broker_refuses_is_told_with_its_line(kaspar_on_both: Kaspar) -> None:
    """A compacted topic takes no record without a key."""
    from kaspar.client.admin.creation import NewTopic, create_topics
    from kaspar.client.admin.session import Admin

    topic = kaspar_on_both.name_of("compacted")
    with Admin(kaspar_on_both.servers) as admin:
        create_topics(admin, [NewTopic(topic, 1, 1, {"cleanup.policy": "compact"})])
    done = kaspar_on_both.run("produce", topic, stdin="no key\n")
    assert done.code == 1
    assert done.errors.startswith("kaspar: line 1: ")
    assert "0 records (0 B)" in done.errors


@pytest.mark.parametrize(
    ("words", "code", "sentence"),
    [
        (["ordrs-made"], 3, "there is no topic 'ordrs-made': did you mean 'orders-made'"),
        (["orders-made", "-p", "7"], 3, "orders-made has partitions 0 to 0, not 7"),
        (["orders-made", "/no/such/file"], 1, "/no/such/file: No such file or directory"),
        (["orders-made", "--template", "{{nme}}"], 2, "unknown placeholder 'nme': did you mean name?"),
        (["orders-made", "--template", "x", "--key", "{{nme}}"], 2, "unknown placeholder 'nme'"),
        (["orders-made", "-H", "=x"], 2, "'=x' is not a header"),
        (["orders-made", "--timestamp", "soon"], 2, "'soon' is not a time"),
        (["orders-made", "-k", "a", "--key-field", "b"], 2, "only one of --key, --key-separator and --key-field"),
        (["orders-made", "--value", "a", "--template", "b"], 2, "only one of files, --value and --template"),
        (["orders-made", "--value-type", "log"], 2, "'log' is not one of 'string', 'json', 'long'"),
    ],
)
def test_mistakes(kaspar: Kaspar, words: list[str], code: int, sentence: str) -> None:
    kaspar.write("orders-made", "--create", "--value", "x")
    done = kaspar.run("produce", *words, stdin="x\n")
    assert (done.code, done.output) == (code, "")
    assert sentence in done.errors
    assert len(done.errors.splitlines()) == 1


def test_words_of_templates_are_listed(kaspar: Kaspar) -> None:
    lines = kaspar.ok("produce", "--template-words").lines
    assert any(line.startswith("{{int LOW HIGH}}  ") for line in lines)


def test_ctrl_c_delivers_what_is_on_its_way(kaspar: Kaspar) -> None:
    topic = kaspar.new_topic("interrupted")
    with kaspar.start("produce", topic, "--template", "{{seq}}", "--rate", "200", "--verbose") as process:
        assert process.stdout is not None
        assert process.stdout.readline() == f"{topic}/0@0\n"
        assert process.stderr is not None
        process.send_signal(signal.SIGINT)
        delivered = 1 + len(process.stdout.readlines())
        errors = process.stderr.read()
        process.wait(PATIENCE_S)
    assert process.returncode == 130
    assert f"to {topic} in " in errors
    assert "Traceback" not in errors
    assert kaspar.ok("consume", topic).lines == [str(number) for number in range(1, delivered + 1)]


def test_closed_pipe_ends_verbose_output_quietly(kaspar: Kaspar) -> None:
    topic = kaspar.new_topic("closed")
    with kaspar.start("produce", topic, "--template", "{{seq}}", "--rate", "200", "--verbose") as process:
        assert process.stdout is not None
        assert process.stderr is not None
        process.stdout.readline()
        process.stdout.close()
        errors = process.stderr.read()
        process.wait(PATIENCE_S)
    assert process.returncode == 1
    assert "Traceback" not in errors
