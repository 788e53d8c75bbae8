"""`kaspar consume`: where it begins and ends, what it prints, groups, and how it is ended."""

import json
import os
import select
import signal
import subprocess
import sys

import pytest

from kaspar.client.admin.group_members import describe_group_members
from kaspar.client.admin.session import Admin
from kaspar.client.offsets import fetch_committed
from tests.integration.cli.records.command import Kaspar

ORDERS = [
    {"id": 1, "amount": 5, "customer": {"name": "ada"}},
    {"id": 2, "amount": 50, "customer": {"name": "bob"}},
    {"id": 3, "amount": 500},
]
PATIENCE_S = 30.0


def _orders(kaspar: Kaspar) -> str:
    topic = kaspar.new_topic("orders")
    lines = "".join(json.dumps(order) + "\n" for order in ORDERS)
    kaspar.write(topic, "--key-field", "id", "-H", "shop=7", stdin=lines)
    return topic


def _numbers(kaspar: Kaspar, count: int, *, partitions: int = 1) -> str:
    topic = kaspar.new_topic("numbers", partitions=partitions)
    kaspar.write(topic, stdin="".join(f"{number}\n" for number in range(count)))
    return topic


def test_records_are_printed_and_the_command_ends_in_a_pipe(kaspar_on_both: Kaspar) -> None:
    topic = _numbers(kaspar_on_both, 1000, partitions=3)
    assert sorted(map(int, kaspar_on_both.ok("consume", topic).lines)) == list(range(1000))


def test_empty_topic_prints_nothing(kaspar: Kaspar) -> None:
    assert kaspar.ok("consume", kaspar.new_topic("empty", partitions=3)).output == ""


@pytest.mark.parametrize(
    ("options", "expected"),
    [
        (["-n", "2"], ["0", "1"]),
        (["--from", "3"], ["3", "4"]),
        (["--from", "-1"], ["4"]),
        (["--from", "-100"], ["0", "1", "2", "3", "4"]),
        (["--from", "99"], []),
        (["--from", "end"], []),
        (["--from", "1 hour ago"], ["0", "1", "2", "3", "4"]),
        (["--until", "1 hour ago"], []),
        (["--from", "1", "-n", "1"], ["1"]),
        (["--partitions", "0"], ["0", "1", "2", "3", "4"]),
        (["-f", "%p/%o=%s;"], ["0/0=0;0/1=1;0/2=2;0/3=3;0/4=4;"]),
    ],
)
def test_positions(kaspar: Kaspar, options: list[str], expected: list[str]) -> None:
    assert kaspar.ok("consume", _numbers(kaspar, 5), *options).lines == expected


def test_from_and_until_a_time(kaspar_on_both: Kaspar) -> None:
    topic = kaspar_on_both.new_topic("timed")
    for timestamp in (1_000_000_000_000, 1_000_000_001_000, 1_000_000_002_000):
        kaspar_on_both.write(topic, "--timestamp", str(timestamp), "--value", str(timestamp))
    assert kaspar_on_both.ok("consume", topic, "--from", "1000000000500").lines == ["1000000001000", "1000000002000"]
    assert kaspar_on_both.ok("consume", topic, "--from", "2001-09-09T01:46:42Z").lines == ["1000000002000"]
    assert kaspar_on_both.ok("consume", topic, "--until", "1000000001000").lines == ["1000000000000"]
    assert kaspar_on_both.ok("consume", topic, "--from", "yesterday").lines == []


def test_filters_and_parts(kaspar: Kaspar) -> None:
    topic = _orders(kaspar)
    found = kaspar.ok("consume", topic, "--where", 'value["amount"] > 10 and headers["shop"] == "7"', "-o", "key-value")
    assert [line.split("\t")[0] for line in found.lines] == ["2", "3"]
    assert kaspar.ok("consume", topic, "--path", "$.customer.name").lines == ["ada", "bob"]
    unfit = kaspar.ok("consume", topic, "--where", 'value["customer"]["name"] == "bob"', "-n", "9")
    assert len(unfit.lines) == 1
    assert f"--where failed on 1 records, which were skipped; the first was {topic}/0@2: KeyError" in unfit.errors


def test_json_lines_and_meta(kaspar: Kaspar) -> None:
    topic = _orders(kaspar)
    records = [json.loads(line) for line in kaspar.ok("consume", topic, "--json", "--meta").lines]
    assert [record["value"] for record in records] == ORDERS
    assert [(record["key"], record["offset"]) for record in records] == [("1", 0), ("2", 1), ("3", 2)]
    assert records[0]["headers"] == [{"name": "shop", "value": "7"}]
    assert records[0]["timestamp_type"] == "CreateTime"
    lines = kaspar.ok("consume", topic, "--meta", "--separator", "|", "-n", "1").lines
    assert lines[0].split("|")[:3] == [topic, "0", "0"]


def test_record_of_another_type_is_reported_and_the_exit_code_tells(kaspar: Kaspar) -> None:
    topic = kaspar.new_topic("longs")
    kaspar.write(topic, "--value-type", "long", stdin="1\n-2\n")
    kaspar.write(topic, "--value", "three")
    done = kaspar.run("consume", topic, "--value-type", "long")
    assert (done.code, done.lines) == (1, ["1", "-2"])
    assert done.errors == f"kaspar: {topic}/0@2: 'three' is not a long: it has 5 bytes and not 8\n"


def test_patterns_and_several_topics(kaspar: Kaspar) -> None:
    prefix = kaspar.name_of("shop")
    for name in ("a", "b", "c"):
        kaspar.write(f"{prefix}.{name}", "--create", "--value", name)
    assert sorted(kaspar.ok("consume", f"{prefix}.*").lines) == ["a", "b", "c"]
    assert sorted(kaspar.ok("consume", f"^{prefix}[.](a|b)$").lines) == ["a", "b"]
    assert sorted(kaspar.ok("consume", f"{prefix}.c", f"{prefix}.a").lines) == ["a", "c"]
    assert sorted(kaspar.ok("consume", f"{prefix}.?", "--group", prefix).lines) == ["a", "b", "c"]
    assert kaspar.run("consume", f"{prefix}-z*").code == 3


def test_aborted_records_are_left_out_unless_asked_for(kaspar_on_both: Kaspar) -> None:
    from confluent_kafka import Producer

    topic = kaspar_on_both.new_topic("transactions")
    producer = Producer({"bootstrap.servers": kaspar_on_both.servers, "transactional.id": topic})
    producer.init_transactions()
    for value, end in (("kept", producer.commit_transaction), ("aborted", producer.abort_transaction)):
        producer.begin_transaction()
        producer.produce(topic, value=value)
        producer.flush()
        end()
    assert kaspar_on_both.ok("consume", topic).lines == ["kept"]
    assert kaspar_on_both.ok("consume", topic, "--isolation", "uncommitted").lines == ["kept", "aborted"]


def test_group_goes_on_where_it_was(kaspar_on_both: Kaspar) -> None:
    topic = _numbers(kaspar_on_both, 5)
    group = kaspar_on_both.name_of("group")
    assert kaspar_on_both.ok("consume", topic, "--group", group, "-n", "2").lines == ["0", "1"]
    assert _committed(kaspar_on_both, group) == [2]
    assert kaspar_on_both.ok("consume", topic, "--group", group).lines == ["2", "3", "4"]
    assert kaspar_on_both.ok("consume", topic, "--group", group).lines == []
    assert _committed(kaspar_on_both, group) == [5]


def _committed(kaspar: Kaspar, group: str) -> list[int]:
    with Admin(kaspar.servers) as admin:
        return [committed.offset for committed in fetch_committed(admin.client, group).values()]


@pytest.mark.parametrize(
    ("words", "code", "sentence"),
    [
        (["ordrs-near"], 3, "there is no topic 'ordrs-near': did you mean 'orders-near'"),
        (["zzzz"], 3, "there is no topic 'zzzz': 'kaspar topic create zzzz' creates it"),
        (["orders-near", "-p", "7"], 3, "orders-near has partitions 0 to 0, not 7"),
        (["orders-near", "--where", "valu > 1"], 2, "a record has no 'valu': did you mean value?"),
        (["orders-near", "--path", "$."], 2, "'$.' is not a path"),
        (["orders-near", "--from", "somewhere"], 2, "'somewhere' is neither start, end, an offset"),
        (["orders-near", "--follow", "--until", "end"], 2, "--follow and --until cannot be combined"),
        (["orders-near", "--group", "g", "-p", "0"], 2, "--partitions cannot be used with --group"),
        (["orders-near", "--group", "g", "--from", "5"], 2, "with --group, --from is start or end"),
        (["orders-near", "--json", "-f", "%s"], 2, "only one of --output (or --json), --format and --path"),
        ([], 2, "missing argument 'TOPIC...'"),
    ],
)
def test_mistakes(kaspar: Kaspar, words: list[str], code: int, sentence: str) -> None:
    kaspar.write("orders-near", "--create", "--value", "x")
    done = kaspar.run("consume", *words)
    assert (done.code, done.output) == (code, "")
    assert sentence in done.errors
    assert len(done.errors.splitlines()) == 1


def test_no_broker(kaspar: Kaspar) -> None:
    done = kaspar.run("consume", "orders", "-b", "127.0.0.1:1")
    assert done.code == 5
    assert done.errors == "kaspar: no broker responds at 127.0.0.1:1: is it running? 'kaspar up' starts one\n"


# --- as a process of its own ------------------------------------------------------------------------------------------


def _line_of(process: "subprocess.Popen[str]") -> str:
    assert process.stdout is not None
    return process.stdout.readline().strip()


def test_ctrl_c_leaves_the_group_and_commits_what_was_printed(kaspar: Kaspar) -> None:
    topic, group = _numbers(kaspar, 3), kaspar.name_of("group")
    with kaspar.start("consume", topic, "--follow", "--group", group) as process:
        assert [_line_of(process) for _ in range(3)] == ["0", "1", "2"]
        kaspar.write(topic, "--value", "3")
        assert _line_of(process) == "3"
        process.send_signal(signal.SIGINT)
        output, errors = process.communicate(timeout=PATIENCE_S)
    assert (process.returncode, output, errors) == (130, "", "")
    assert _committed(kaspar, group) == [4]
    with Admin(kaspar.servers) as admin:
        assert describe_group_members(admin, group) == ()


def test_closed_pipe_ends_it_quietly_though_no_record_comes(kaspar: Kaspar) -> None:
    topic = _numbers(kaspar, 3)
    with kaspar.start("consume", topic, "--follow") as process:
        assert process.stdout is not None
        assert process.stderr is not None
        assert _line_of(process) == "0"
        process.stdout.close()
        assert process.stderr.read() == ""
        process.wait(PATIENCE_S)
    assert process.returncode == 1


def test_follow_without_group_ends_at_ctrl_c(kaspar: Kaspar) -> None:
    topic = _numbers(kaspar, 1)
    with kaspar.start("consume", topic, "--follow", "--from", "-1") as process:
        assert _line_of(process) == "0"
        process.send_signal(signal.SIGINT)
        output, errors = process.communicate(timeout=PATIENCE_S)
    assert (process.returncode, output, errors) == (130, "", "")


def test_terminal_has_colours_and_follows_until_ctrl_c(kaspar: Kaspar) -> None:
    topic = _numbers(kaspar, 1)
    terminal, side = os.openpty()
    environment = {**os.environ, "KASPAR_BOOTSTRAP_SERVER": kaspar.servers, "TERM": "xterm"}
    environment.pop("NO_COLOR", None)
    process = subprocess.Popen(
        [sys.executable, "-m", "kaspar.cli.main", "consume", topic], stdin=side, stdout=side, env=environment
    )
    os.close(side)
    try:
        assert f"\x1b[2m{topic}/0@0\x1b[0m" in _read_until(terminal, "\n")
        kaspar.write(topic, "--value", "new")
        assert "new" in _read_until(terminal, "\n")
        process.send_signal(signal.SIGINT)
        assert process.wait(PATIENCE_S) == 130
    finally:
        process.kill()
        process.wait()
        os.close(terminal)


def test_dumb_terminal_has_no_colours(kaspar: Kaspar) -> None:
    topic = _numbers(kaspar, 1)
    terminal, side = os.openpty()
    environment = {**os.environ, "KASPAR_BOOTSTRAP_SERVER": kaspar.servers, "TERM": "dumb"}
    command = [sys.executable, "-m", "kaspar.cli.main", "consume", topic, "-n", "1"]
    subprocess.run(command, stdin=side, stdout=side, env=environment, timeout=PATIENCE_S, check=True)
    os.close(side)
    assert _read_until(terminal, "\n").startswith(f"{topic}/0@0  ")
    os.close(terminal)


def _read_until(terminal: int, end: str) -> str:
    text = ""
    while not text.endswith(end):
        assert select.select([terminal], [], [], PATIENCE_S)[0], text
        text += os.read(terminal, 4096).decode()
    return text
