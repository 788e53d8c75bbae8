"""A session of ours: its settings are in force, its workers are this Python, and its queries can be watched."""

import io
import os
import re
import subprocess
import sys
import urllib.request
import uuid
from collections.abc import Iterator
from pathlib import Path

import pyarrow as pa
import pytest
from pyspark.sql import SparkSession

import kaspar.spark
from kaspar.base.errors import KasparError
from kaspar.spark.running.sessions import settings_for
from kaspar.spark.watching.progress import Watch
from tests.peers.kaspar import KasparProcess
from tests.spark.topics import Topics, wait_until

ROOT = Path(__file__).parents[2]


def test_settings_are_in_force(spark: SparkSession) -> None:
    wanted = settings_for("local[2]", cores=2)
    given = dict(spark.sparkContext.getConf().getAll())
    assert {name: given.get(name) for name in wanted} == wanted


def test_setting_of_the_caller_wins(spark: SparkSession) -> None:
    name = "spark.sql.shuffle.partitions"
    assert kaspar.spark.session(config={name: 3}).conf.get(name) == "3"
    assert kaspar.spark.session().conf.get(name) == "3"  # a session that is there stays as it is
    assert kaspar.spark.session(config={name: 2}).conf.get(name) == "2"


def test_session_on_another_master_is_refused(spark: SparkSession) -> None:
    with pytest.raises(KasparError, match=r"already has a session on local\[2\]: stop\(\) it before starting"):
        kaspar.spark.session(master="spark://127.0.0.1:7077")


def test_what_spark_submit_is_given_wins(tmp_path: Path) -> None:
    program = tmp_path / "program.py"
    program.write_text(
        "import kaspar.spark\n"
        "spark = kaspar.spark.session('submitted', config={'spark.sql.execution.arrow.maxRecordsPerBatch': 7})\n"
        "names = ('spark.sql.shuffle.partitions', 'spark.sql.execution.arrow.maxRecordsPerBatch')\n"
        "print(spark.sparkContext.master, *map(spark.conf.get, names))\n"
    )
    scripts = Path(sys.executable).parent
    settings = ["--conf", "spark.sql.shuffle.partitions=5", "--conf", "spark.ui.enabled=false"]
    done = subprocess.run(
        [scripts / "spark-submit", "--master", "local[1]", "--driver-memory", "512m", *settings, program],
        env={**os.environ, "PATH": f"{scripts}:{os.environ['PATH']}"},
        capture_output=True,
        text=True,
        timeout=110,
        check=False,
    )
    assert done.stdout == "local[1] 5 7\n", done.stderr


def test_workers_are_this_python_behind_unix_sockets(spark: SparkSession) -> None:
    def look(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for _ in batches:
            pass
        unix = {line.split()[6] for line in Path("/proc/net/unix").read_text().splitlines()[1:]}
        links = [os.readlink(f"/proc/self/fd/{number}") for number in (0, 1, *range(3, 64)) if _is_open(number)]
        sockets = {link[len("socket:[") : -1] for link in links if link.startswith("socket:[")}
        yield pa.RecordBatch.from_pydict({"python": [sys.executable], "unix": [bool(sockets & unix)]})

    rows = spark.range(0, 2, 1, 2).mapInArrow(look, "python string, unix boolean").collect()
    assert {(row.python, row.unix) for row in rows} == {(sys.executable, True)}


def _is_open(number: int) -> bool:
    return os.path.lexists(f"/proc/self/fd/{number}")


def test_state_is_kept_by_rocksdb_which_writes_changes(spark: SparkSession, tmp_path: Path) -> None:
    rows = spark.readStream.format("rate-micro-batch").options(rowsPerBatch=10, numPartitions=1).load()
    counted = rows.groupBy("value").count().writeStream.format("noop").outputMode("update")
    query = counted.option("checkpointLocation", str(tmp_path)).trigger(processingTime="0 seconds").start()
    try:
        wait_until(lambda: any(tmp_path.glob("state/0/*/*.changelog")), "the state's changes are written")
    finally:
        query.stop()


def test_session_without_configuration_finds_the_format(
    spark: SparkSession, broker: KasparProcess, topics: Topics
) -> None:
    orders = topics.create()
    topics.produce(orders, [b"one"])
    plain = spark.newSession()
    options = {"kafka.bootstrap.servers": broker.bootstrap, "subscribe": orders}
    assert [row.value for row in plain.read.format("kaspar").options(**options).load().collect()] == [b"one"]
    kaspar.spark.register(plain)
    assert plain.read.format("kaspar").options(**options).load().count() == 1


@pytest.fixture
def watching(spark: SparkSession) -> Iterator[tuple[Watch, io.StringIO]]:
    out = io.StringIO()
    with kaspar.spark.watch(spark, out=out, metrics="127.0.0.1:0") as watch:
        yield watch, out


def test_query_is_watched(
    spark: SparkSession,
    broker: KasparProcess,
    topics: Topics,
    tmp_path: Path,
    watching: tuple[Watch, io.StringIO],
) -> None:
    watch, out = watching
    orders = topics.create(partitions=2)
    topics.produce(orders, [b"x"] * 7)
    rows = (
        spark.readStream.format("kaspar")
        .options(**{"kafka.bootstrap.servers": broker.bootstrap, "subscribe": orders, "startingOffsets": "earliest"})
        .option("maxOffsetsPerTrigger", 4)
        .load()
    )
    query = (
        rows.writeStream.format("noop")
        .queryName("watched")
        .option("checkpointLocation", str(tmp_path))
        .trigger(availableNow=True)
        .start()
    )
    query.awaitTermination()
    wait_until(lambda: "watched: ended" in out.getvalue(), "the end of the query is reported")
    assert re.search(r"watched: batch +0 .*rows/s .*ms a batch +lag +3\n", out.getvalue()), out.getvalue()
    assert re.search(r"watched: ended after \d+ batches and 7 rows\n", out.getvalue())
    assert watch.page is not None
    with urllib.request.urlopen(f"http://127.0.0.1:{watch.page.port}/metrics", timeout=30) as response:
        page = response.read().decode()
    assert 'kaspar_spark_query_rows_total{query="watched"} 7\n' in page
    assert f'kaspar_spark_query_lag{{query="watched",topic="{orders}",partition="0"}} 0\n' in page


def test_failed_query_is_reported_in_one_sentence(
    spark: SparkSession, broker: KasparProcess, tmp_path: Path, watching: tuple[Watch, io.StringIO]
) -> None:
    _, out = watching
    options = {"kafka.bootstrap.servers": broker.bootstrap, "subscribe": "there-is-none"}
    rows = spark.readStream.format("kaspar").options(**options).load()
    query = rows.writeStream.format("noop").queryName("bad").option("checkpointLocation", str(tmp_path)).start()
    wait_until(lambda: not query.isActive, "the query ends")
    wait_until(lambda: "bad: stopped: " in out.getvalue(), "the reason is reported")
    sentences = [line for line in out.getvalue().splitlines() if line.startswith("bad: stopped: ")]
    assert len(sentences) == 1
    assert "there-is-none" in sentences[0]


QUIET_STOPS = """
import sys, time
import kaspar.spark

bootstrap, source, target, folder = sys.argv[1:]
settings = {"spark.driver.extraJavaOptions": "-XX:+UseSerialGC -XX:TieredStopAtLevel=1"}
spark = kaspar.spark.session("stops", "local[2]", settings)
broker = {"kafka.bootstrap.servers": bootstrap}
rows = spark.readStream.format("kaspar").options(**broker, subscribe=source, startingOffsets="earliest")
rows = rows.option("maxOffsetsPerTrigger", 20_000).load()

def start(name):
    writer = rows.select("value").writeStream.option("checkpointLocation", f"{folder}/{name}")
    if name == "to a topic":
        writer = writer.format("kaspar").options(**broker, topic=target)
    else:
        writer = writer.foreachBatch(lambda batch, number: batch.write.format("noop").mode("overwrite").save())
    query = writer.start()
    while query.lastProgress is None and query.isActive:
        time.sleep(0.01)
    return query

for name in ("to a topic", "by foreachBatch"):
    start(name).stop()
start("until the end")
kaspar.spark.end(spark)
"""


def test_queries_and_sessions_are_stopped_without_a_word(broker: KasparProcess, topics: Topics, tmp_path: Path) -> None:
    """In the middle of a batch, and one of them by the end of its session."""
    source, target = topics.create(), topics.create()
    topics.produce(source, [b"x" * 100] * 200_000)
    done = subprocess.run(
        [sys.executable, "-c", QUIET_STOPS, broker.bootstrap, source, target, tmp_path],
        capture_output=True,
        text=True,
        timeout=150,
        check=False,
    )
    assert (done.returncode, done.stdout) == (0, ""), done.stderr
    assert not re.search(r"ERROR|Traceback|Exception|Error\b", done.stderr), done.stderr


def first_program(page: str, shown: dict[str, str]) -> str:
    """The program of a page that makes a session, with names of the test in place of those that are shown."""
    blocks: list[str] = re.findall(r"```python\n(.*?)```", (ROOT / page).read_text(), re.S)
    (program,) = [block for block in blocks if "spark.session()" in block]
    for name, here in shown.items():
        assert name in program
        program = program.replace(name, here)
    return program


def test_first_program_of_the_readme(
    spark: SparkSession, broker: KasparProcess, topics: Topics, tmp_path: Path
) -> None:
    greetings, loud = topics.create(), topics.create()
    topics.produce(greetings, [b"hello", b"guten Tag"])
    program = first_program(
        "README.md",
        {
            "localhost:9092": broker.bootstrap,
            '"greetings"': f'"{greetings}"',
            '"loud-greetings"': f'"{loud}"',
            "checkpoints/loud": str(tmp_path),
        },
    )
    for _ in range(2):  # the second run finds its checkpoint, and nothing new
        exec(program, {})
        assert topics.values(loud) == [b"HELLO", b"GUTEN TAG"]


def test_first_program_of_the_page_makes_its_topic(
    spark: SparkSession, broker: KasparProcess, capsys: pytest.CaptureFixture[str]
) -> None:
    topic = f"clicks-{uuid.uuid4()}"
    exec(first_program("docs/spark.md", {"localhost:9092": broker.bootstrap, '"clicks"': f'"{topic}"'}), {})
    rows = re.findall(r"\|(/\w+)\| +(\d+)\|", capsys.readouterr().out)
    assert sorted(rows) == [("/help", "2"), ("/home", "1")]
