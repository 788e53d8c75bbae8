"""Options that are nearly right are refused with the right name; those of others are left alone."""

import re
from pathlib import Path

import pytest

from kaspar.spark.kafka_settings import InvalidOption
from kaspar.spark.option_names import READ_OPTIONS, WRITE_OPTIONS, refuse_misspelled

DOCS = Path(__file__).parents[3] / "docs" / "spark"

KAFKA_CLIENT = """
acks allow.auto.create.topics auto.commit.interval.ms auto.offset.reset batch.size bootstrap.servers buffer.memory
check.crcs client.dns.lookup client.id client.rack compression.gzip.level compression.lz4.level compression.type
compression.zstd.level config.providers connections.max.idle.ms default.api.timeout.ms delivery.timeout.ms
enable.auto.commit enable.idempotence enable.metrics.push exclude.internal.topics fetch.max.bytes fetch.max.wait.ms
fetch.min.bytes group.id group.instance.id group.protocol group.remote.assignor heartbeat.interval.ms
interceptor.classes isolation.level key.deserializer key.serializer linger.ms max.block.ms
max.in.flight.requests.per.connection max.partition.fetch.bytes max.poll.interval.ms max.poll.records max.request.size
metadata.max.age.ms metadata.max.idle.ms metadata.recovery.rebootstrap.trigger.ms metadata.recovery.strategy
metric.reporters metrics.num.samples metrics.recording.level metrics.sample.window.ms partition.assignment.strategy
partitioner.adaptive.partitioning.enable partitioner.availability.timeout.ms partitioner.class partitioner.ignore.keys
receive.buffer.bytes reconnect.backoff.max.ms reconnect.backoff.ms request.timeout.ms retries retry.backoff.max.ms
retry.backoff.ms sasl.client.callback.handler.class sasl.jaas.config sasl.kerberos.kinit.cmd
sasl.kerberos.min.time.before.relogin sasl.kerberos.service.name sasl.kerberos.ticket.renew.jitter
sasl.kerberos.ticket.renew.window.factor sasl.login.callback.handler.class sasl.login.class
sasl.login.connect.timeout.ms sasl.login.read.timeout.ms sasl.login.refresh.buffer.seconds
sasl.login.refresh.min.period.seconds sasl.login.refresh.window.factor sasl.login.refresh.window.jitter
sasl.login.retry.backoff.max.ms sasl.login.retry.backoff.ms sasl.mechanism sasl.oauthbearer.assertion.algorithm
sasl.oauthbearer.clock.skew.seconds sasl.oauthbearer.expected.audience sasl.oauthbearer.expected.issuer
sasl.oauthbearer.header.urlencode sasl.oauthbearer.jwks.endpoint.url sasl.oauthbearer.scope.claim.name
sasl.oauthbearer.sub.claim.name sasl.oauthbearer.token.endpoint.url security.protocol security.providers
send.buffer.bytes session.timeout.ms share.acknowledgement.mode socket.connection.setup.timeout.max.ms
socket.connection.setup.timeout.ms ssl.cipher.suites ssl.enabled.protocols ssl.endpoint.identification.algorithm
ssl.engine.factory.class ssl.key.password ssl.keymanager.algorithm ssl.keystore.certificate.chain ssl.keystore.key
ssl.keystore.location ssl.keystore.password ssl.keystore.type ssl.protocol ssl.provider
ssl.secure.random.implementation ssl.trustmanager.algorithm ssl.truststore.certificates ssl.truststore.location
ssl.truststore.password ssl.truststore.type
transaction.timeout.ms transaction.two.phase.commit.enable transactional.id value.deserializer value.serializer
"""
"""Every setting of Kafka's consumer and producer: what has no meaning here is ignored."""

OTHER_SOURCES = """
advanceMillisPerBatch asyncProgressTrackingCheckpointIntervalMs asyncProgressTrackingEnabled avroSchema basePath
batchsize checkpointLocation cleanSource compression createTableOptions dateFormat dbtable delimiter driver emptyValue
encoding fetchsize header host ignoreChanges ignoreDeletes ignoreMissingFiles includeTimestamp inferSchema
kafkaConsumer.pollTimeoutMs latestFirst lineSep lowerBound maxFileAge maxFilesPerTrigger maxRecordsPerFile mergeSchema
mode modifiedAfter multiLine nullValue numPartitions numRows outputMode partitionColumn partitionOverwriteMode password
path pathGlobFilter port provider query queryName quote rampUpTime readChangeFeed recursiveFileLookup replaceWhere
rowsPerBatch rowsPerSecond samplingRatio schema sep serialization.format startingVersion timestampAsOf timestampFormat
truncate upperBound url user versionAsOf wholetext group name table team.owner made.up kafka.made.up
"""
"""Options of other sources and sinks, and a team's own: a query may carry them along."""


@pytest.mark.parametrize("meant", [READ_OPTIONS, WRITE_OPTIONS], ids=["read", "write"])
def test_what_is_others_is_left_alone(meant: tuple[str, ...]) -> None:
    refuse_misspelled([f"kafka.{name}" for name in KAFKA_CLIENT.split()], meant)
    refuse_misspelled(OTHER_SOURCES.split(), meant)


def test_a_read_and_a_write_may_have_the_same_options() -> None:
    refuse_misspelled([*READ_OPTIONS, *WRITE_OPTIONS], READ_OPTIONS)
    refuse_misspelled([name.upper() for name in (*READ_OPTIONS, *WRITE_OPTIONS)], WRITE_OPTIONS)


@pytest.mark.parametrize("page", ["reading.md", "writing.md", "formats.md", "exactly-once.md", "security.md"])
def test_options_that_a_page_names_are_known(page: str) -> None:
    rows = re.findall(r"^\| (`[a-zA-Z].*?) \|", (DOCS / page).read_text(), re.M)
    named = [name for row in rows for name in re.findall(r"`([a-zA-Z][\w.]*)`", row)]
    assert named or page == "exactly-once.md"
    refuse_misspelled(named, READ_OPTIONS if page != "writing.md" else WRITE_OPTIONS)


@pytest.mark.parametrize(
    ("given", "right"),
    [
        ("startingOffset", "startingOffsets"),
        ("startOffsets", "startingOffsets"),
        ("startingOffests", "startingOffsets"),
        ("starting_offsets", "startingOffsets"),
        ("kafka.startingOffsets", "startingOffsets"),
        ("endOffsets", "endingOffsets"),
        ("kafka.isolation", "kafka.isolation.level"),
        ("kafka.isolationLevel", "kafka.isolation.level"),
        ("isolation.level", "kafka.isolation.level"),
        ("kafka.bootstrap.server", "kafka.bootstrap.servers"),
        ("bootstrap.servers", "kafka.bootstrap.servers"),
        ("maxOffsetPerTrigger", "maxOffsetsPerTrigger"),
        ("subcribe", "subscribe"),
        ("kafka.subscribe", "subscribe"),
        ("minPartition", "minPartitions"),
        ("includeHeader", "includeHeaders"),
        ("valueFormat", "value.format"),
        ("failOnDataLos", "failOnDataLoss"),
        ("kafka.sasl.mechanisms", "kafka.sasl.mechanism"),
        ("sasl.jaas.config", "kafka.sasl.jaas.config"),
        ("kafka.truststore.location", "kafka.ssl.truststore.location"),
    ],
)
def test_option_of_a_read_that_is_nearly_right(given: str, right: str) -> None:
    with pytest.raises(InvalidOption) as refused:
        refuse_misspelled(["path", given], READ_OPTIONS)
    assert str(refused.value) == f"Unknown option '{given}'. Did you mean '{right}'?"


@pytest.mark.parametrize(
    ("given", "right"),
    [
        ("topics", "topic"),
        ("kafka.ack", "kafka.acks"),
        ("acks", "kafka.acks"),
        ("kafka.compression", "kafka.compression.type"),
        ("kafka.idempotence", "kafka.enable.idempotence"),
        ("guarantees", "guarantee"),
        ("txn.app.id", "txnAppId"),
    ],
)
def test_option_of_a_write_that_is_nearly_right(given: str, right: str) -> None:
    with pytest.raises(InvalidOption, match=f"Unknown option '{given}'. Did you mean '{right}'"):
        refuse_misspelled([given], WRITE_OPTIONS)
