"""The data source over SASL_SSL, as a user with just the ACLs that docs/spark/security.md names; and what Spark shows
of the secrets in its options, which is nothing.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import ClassVar

import pytest
from confluent_kafka.admin import AdminClient
from cryptography.hazmat.primitives import serialization
from py4j.java_gateway import JavaObject, JVMView  # type: ignore[import-untyped]
from py4j.protocol import Py4JJavaError  # type: ignore[import-untyped]
from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, SparkSession

import kaspar.spark
from kaspar.acls.acl import AclOperation, ResourceType
from kaspar.cli.main import main
from kaspar.spark.running.sessions import SPARKS_REDACTION
from kaspar.spark.security_options import REDACTED
from tests.peers.kaspar import KasparProcess
from tests.peers.process import write_properties
from tests.peers.sasl_ssl import (
    Acl,
    User,
    add_user,
    allow,
    broker_settings,
    disallow,
    java_settings,
    write_certificates,
)
from tests.peers.wire import free_port
from tests.spark.conftest import SETTINGS
from tests.spark.documented_acls import documented_acls
from tests.spark.topics import Topics, wait_until

EXACTLY_ONCE = {"guarantee": "exactly-once"}
KEY_PASSWORD = "key-passphrase-4711"


@dataclass(frozen=True, slots=True)
class Secured:
    broker: KasparProcess
    port: int
    folder: Path
    user: User

    @property
    def topics(self) -> Topics:
        """By PLAINTEXT, on which everybody is a super user."""
        return Topics(self.broker.bootstrap)

    @property
    def settings(self) -> dict[str, str]:
        return {"bootstrap.servers": f"localhost:{self.port}", **java_settings(self.folder, self.user)}

    @property
    def options(self) -> dict[str, str]:
        return _prefixed(self.settings)

    def inline(self) -> dict[str, str]:
        """Without any file: the trusted certificate, and a key of the client's, as PEM."""
        own = (self.folder / "client.pem").read_bytes()
        key = serialization.load_pem_private_key(own, None)
        assert not isinstance(key, str)
        encrypted = key.private_bytes(
            serialization.Encoding.PEM,
            serialization.PrivateFormat.PKCS8,
            serialization.BestAvailableEncryption(KEY_PASSWORD.encode()),
        )
        settings = self.settings | {
            "ssl.truststore.certificates": (self.folder / "ca.pem").read_text(),
            "ssl.keystore.type": "PEM",
            "ssl.keystore.key": encrypted.decode(),
            "ssl.keystore.certificate.chain": own[own.index(b"-----BEGIN CERTIFICATE") :].decode(),
            "ssl.key.password": KEY_PASSWORD,
        }
        del settings["ssl.truststore.location"]
        return _prefixed(settings)


def _prefixed(settings: dict[str, str]) -> dict[str, str]:
    return {f"kafka.{name}": value for name, value in settings.items()}


@pytest.fixture(scope="module")
def secured(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Secured]:
    folder = tmp_path_factory.mktemp("secured")
    write_certificates(folder)
    broker, port = KasparProcess(folder / "broker", overrides=SETTINGS), free_port()
    broker.overrides |= broker_settings(folder, plain_port=broker.port, secure_port=port)
    with broker:
        made = Secured(broker, port, folder, User("etl", "etl-pass-0815"))
        add_user(AdminClient({"bootstrap.servers": broker.bootstrap}), made.user)
        yield made
        assert made.user.password not in broker.log_text()


def run_stream(spark: SparkSession, secured: Secured, source: str, sink: str, checkpoint: Path) -> None:
    reader = spark.readStream.format("kaspar").options(**secured.options, subscribe=source, startingOffsets="earliest")
    rows = reader.option("maxOffsetsPerTrigger", "2").load().select("key", "value")
    writer = rows.writeStream.format("kaspar").options(**secured.options, topic=sink, **EXACTLY_ONCE)
    query = writer.option("checkpointLocation", str(checkpoint)).trigger(availableNow=True).start()
    try:
        wait_until(lambda: not query.isActive, "all that is there is written", seconds=60)
        if (failure := query.exception()) is not None:
            raise failure
    finally:
        query.stop()


def test_a_stream_runs_exactly_once_with_the_documented_acls_and_not_without(
    spark: SparkSession, secured: Secured, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    topics = secured.topics
    source, sink, other = topics.create(partitions=2), topics.create(), topics.create()
    topics.produce(source, [b"one", b"two", b"three"])
    acls = documented_acls(SOURCE=source, SINK=sink)
    bootstrap, user = secured.broker.bootstrap, secured.user
    create = next(acl for acl in acls if acl.operation is AclOperation.CREATE)
    write_other = Acl(ResourceType.TOPIC, other, AclOperation.WRITE)
    allow(bootstrap, user, [acl for acl in [*acls, write_other] if acl is not create])
    rows = spark.createDataFrame([("k", "v")], "key STRING, value STRING").coalesce(1)

    def read() -> None:
        spark.read.format("kaspar").options(**secured.options, subscribe=source).load().count()

    def write(topic: str = other) -> Callable[[], None]:
        sinks = secured.options | EXACTLY_ONCE
        return rows.write.format("kaspar").options(**sinks, topic=topic).mode("append").save

    # The decision log does not exist yet.
    assert "Create" in refusal(write())
    allow(bootstrap, user, [create])

    run_stream(spark, secured, source, sink, tmp_path / "checkpoint")
    assert sorted(value or b"" for value in topics.values(sink)) == [b"one", b"three", b"two"]
    config = tmp_path / "client.properties"
    write_properties(config, java_settings(secured.folder, user))
    command = ("spark", "transactions", "--bootstrap-server", secured.settings["bootstrap.servers"])
    assert main([*command, "--command-config", str(config)]) == 0, capsys.readouterr().err
    assert "No query has open transactions." in capsys.readouterr().out

    for acl in acls:
        if acl.resource is ResourceType.GROUP or acl is create:
            continue  # committed offsets are for lag tools: without permission there is a warning
        disallow(bootstrap, user, acl)
        if acl.name == source:
            needed, refused = "Read on the topic", refusal(read)
        elif acl.name == sink:
            needed, refused = "Write", refusal(write(sink))
        else:
            needed, refused = acl.operation.name.title().replace("_", ""), refusal(write())
        assert needed in refused, acl
        assert user.password not in refused
        allow(bootstrap, user, [acl])


def refusal(run: Callable[[], None]) -> str:
    with pytest.raises((PySparkException, Py4JJavaError)) as raised:
        run()
    text = str(raised.value)
    assert ("is not authorized" in text and "docs/spark/security.md" in text) or "lacks the operation" in text
    return text


# --- what is shown ----------------------------------------------------------------------------------------------------


class LogOfTheJvm:
    """Everything that Spark logs at INFO while the block runs, and what it logs of SQL at DEBUG."""

    LEVELS: ClassVar = {"org.apache.spark": "INFO", "org.apache.spark.sql": "DEBUG"}

    def __init__(self, jvm: JVMView) -> None:
        self._log4j = jvm.org.apache.logging.log4j
        self._writer = jvm.java.io.StringWriter()
        self._context = self._log4j.LogManager.getContext(False)

    def __enter__(self) -> "LogOfTheJvm":
        core = self._log4j.core
        layout = core.layout.PatternLayout.createDefaultLayout()
        appender = core.appender.WriterAppender.newBuilder().setName("seen").setTarget(self._writer).setLayout(layout)
        appender = appender.build()
        appender.start()
        for name, level in self.LEVELS.items():
            logger = core.config.LoggerConfig(name, self._log4j.Level.getLevel(level), False)
            logger.addAppender(appender, None, None)
            self._context.getConfiguration().addLogger(name, logger)
        self._context.updateLoggers()
        return self

    def __exit__(self, *_: object) -> None:
        for name in self.LEVELS:
            self._context.getConfiguration().removeLogger(name)
        self._context.updateLoggers()

    @property
    def text(self) -> str:
        return str(self._writer.toString())


def plans_of(jvm: JVMView, rows: DataFrame) -> str:
    execution = rows._jdf.queryExecution()
    modes = ("simple", "extended", "cost", "formatted")
    explained = [execution.explainString(jvm.org.apache.spark.sql.execution.ExplainMode.fromString(m)) for m in modes]
    return "".join([execution.toString(), *explained])


def sql_tab(spark: SparkSession) -> str:
    store: JavaObject = spark._jsparkSession.sharedState().statusStore()
    seen = []
    executions = store.executionsList().iterator()
    while executions.hasNext():
        each = executions.next()
        graph = store.planGraph(each.executionId()).nodes().toString()
        seen += [each.toString(), each.physicalPlanDescription(), each.description(), each.details(), graph]
    return "".join(seen)


def test_secrets_are_shown_nowhere(
    spark: SparkSession,
    secured: Secured,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
) -> None:
    """Not even in a session that its users have made themselves, with Spark's default settings."""
    topics, options, jvm = secured.topics, secured.inline(), spark._jvm
    assert jvm is not None
    source, sink = topics.create(), topics.create()
    topics.produce(source, [b"one"])
    acls = documented_acls(SOURCE=source, SINK=sink)
    allow(secured.broker.bootstrap, secured.user, acls)
    shown: dict[str, str] = {}
    assert spark.conf.get("spark.sql.redaction.options.regex") == REDACTED
    spark.conf.set("spark.sql.redaction.options.regex", SPARKS_REDACTION)
    try:
        with LogOfTheJvm(jvm) as log:
            rows = spark.read.format("kaspar").options(**options, subscribe=source).load()
            assert rows.count() == 1
            rows.createOrReplaceTempView("seen")
            shown["plans"] = plans_of(jvm, rows) + str(spark.sql("DESCRIBE EXTENDED seen").collect())
            rows.select("key", "value").write.format("kaspar").options(**options, topic=sink).mode("append").save()
            stream = spark.readStream.format("kaspar").options(**options, subscribe=source, startingOffsets="earliest")
            shown["plans"] += plans_of(jvm, stream.load())
            sinks = stream.load().select("key", "value").writeStream.format("kaspar").options(**options, topic=sink)
            sinks = sinks.queryName("seen").option("checkpointLocation", str(tmp_path / "checkpoint"))
            query = sinks.trigger(availableNow=True).start()
            wait_until(lambda: not query.isActive, "all that is there is written", seconds=60)
            assert query.exception() is None
            shown["progress"] = f"{query.lastProgress} {query.recentProgress} {query.status}"
            shown["stream"] = query._jsq.explainInternal(True) + query._jsq.toString()
            wrong = options | {"kafka.sasl.jaas.config": secured.user.jaas.replace('etl"', 'nobody"', 1)}
            broken = options | {"kafka.sasl.jaas.config": f"Module required {secured.user.password}"}
            for each in (wrong, broken):
                failing = spark.read.format("kaspar").options(**each, subscribe=source).load()
                with pytest.raises(PySparkException) as raised:
                    failing.count()
                shown["errors"] = shown.get("errors", "") + f"{raised.value!r} {raised.value}"
    finally:
        spark.conf.set("spark.sql.redaction.options.regex", REDACTED)
    shown["log"] = log.text
    shown["SQL tab"] = sql_tab(spark)
    files = [file for file in (tmp_path / "checkpoint").rglob("*") if file.is_file()]
    shown["checkpoint"] = "".join(file.read_text(errors="replace") for file in files)
    shown["output"] = "".join(capsys.readouterr())
    assert "kafka.bootstrap.servers" in shown["plans"], "options are shown, so secrets could be"
    for place, text in shown.items():
        for secret in (secured.user.password, KEY_PASSWORD):
            assert secret not in text, f"in {place}: {text[max(text.index(secret) - 500, 0) :][:1000]}"


def test_a_readable_key_is_refused_before_there_is_a_plan(spark: SparkSession, secured: Secured) -> None:
    key = (secured.folder / "client.pem").read_text()
    options = {**secured.inline(), "kafka.ssl.keystore.key": key}
    rows = spark.createDataFrame([("k", "v")], "key STRING, value STRING")
    for run in (
        lambda: spark.read.format("kaspar").options(**options, subscribe="t").load(),
        lambda: spark.readStream.format("kaspar").options(**options, subscribe="t").load(),
        lambda: rows.write.format("kaspar").options(**options, topic="t").mode("append").save(),
    ):
        with pytest.raises(PySparkException, match="private key that is not encrypted") as raised:
            run()
        assert key.splitlines()[1] not in str(raised.value) + sql_tab(spark)


def test_a_file_that_is_not_on_the_executor_is_named(spark: SparkSession, secured: Secured) -> None:
    options = {**secured.options, "kafka.ssl.truststore.location": "/nowhere/ca.pem"}
    with pytest.raises(PySparkException, match=r"ssl.truststore.location /nowhere/ca.pem cannot be read"):
        spark.read.format("kaspar").options(**options, subscribe="t").load().count()


def test_write_batch_takes_the_options_too(spark: SparkSession, secured: Secured) -> None:
    sink = secured.topics.create()
    allow(secured.broker.bootstrap, secured.user, documented_acls(SOURCE=sink, SINK=sink))
    rows = spark.createDataFrame([("k", "v")], "key STRING, value STRING")
    kaspar.spark.write_batch(rows, batch_id=0, query="secured", topic=sink, options=secured.options)
    assert secured.topics.values(sink) == [b"v"]
