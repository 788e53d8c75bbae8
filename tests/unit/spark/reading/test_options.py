"""The options of a read mean what they mean to Spark's own source, and what it refuses is refused with a sentence."""

import pickle

import pytest

from kaspar.base.ids import TopicPartition
from kaspar.spark.offsets import EARLIEST, LATEST
from kaspar.spark.reading.cores import parallelism
from kaspar.spark.reading.options import COLUMNS, InvalidOption, OffsetLimit, ReadOptions

CLICKS_0 = TopicPartition("clicks", 0)
CLICKS_1 = TopicPartition("clicks", 1)


def options(**given: str) -> ReadOptions:
    """With names as a user writes them, dots as double underscores."""
    return ReadOptions.of(
        {
            "kafka.bootstrap.servers": "localhost:9092",
            "subscribe": "clicks",
            **{name.replace("__", "."): value for name, value in given.items()},
        }
    )


def without_subscribe(**given: str) -> ReadOptions:
    return ReadOptions.of({"kafka.bootstrap.servers": "localhost:9092", **given})


def test_names_are_read_in_any_case() -> None:
    read = ReadOptions.of(
        {
            "KAFKA.Bootstrap.Servers": "a:1",
            "SUBSCRIBE": "clicks",
            "STARTINGOFFSETS": "Earliest",
            "failondataloss": "FALSE",
        }
    )
    assert read.connection.bootstrap_servers == "a:1"
    assert read.starting == OffsetLimit(everywhere=EARLIEST)
    assert not read.fail_on_data_loss


def test_options_can_be_pickled() -> None:
    read = options(startingOffsets='{"clicks":{"0":3}}', maxOffsetsPerTrigger="10", value__format="string")
    assert pickle.loads(pickle.dumps(read)) == read


# --- which topics -----------------------------------------------------------------------------------------------------


def test_exactly_one_of_subscribe_subscribe_pattern_assign_is_given() -> None:
    with pytest.raises(InvalidOption, match="none is"):
        without_subscribe()
    with pytest.raises(InvalidOption, match="subscribe and assign are"):
        options(assign='{"clicks":[0]}')


def test_subscribe_names_topics_apart_by_commas() -> None:
    assert without_subscribe(subscribe=" orders, clicks ,,").subscription.topics == ("clicks", "orders")
    with pytest.raises(InvalidOption, match="names no topic"):
        without_subscribe(subscribe=" , ")


def test_assign_names_partitions() -> None:
    assert without_subscribe(assign='{"clicks":[1,0]}').subscription.assigned == (CLICKS_0, CLICKS_1)


@pytest.mark.parametrize("text", ["clicks", "[]", '{"clicks":0}', '{"clicks":["zero"]}', "{}", '{"clicks":[true]}'])
def test_assign_that_names_no_partitions_is_refused(text: str) -> None:
    with pytest.raises(InvalidOption, match="assign"):
        without_subscribe(assign=text)


def test_a_pattern_must_be_a_regular_expression() -> None:
    assert without_subscribe(subscribePattern="click.*").subscription.pattern == "click.*"
    for bad in ("", "click("):
        with pytest.raises(InvalidOption, match="subscribePattern"):
            without_subscribe(subscribePattern=bad)


# --- where to start and end -------------------------------------------------------------------------------------------


def test_a_timestamp_for_all_comes_before_timestamps_for_each_and_both_before_offsets() -> None:
    offsets = {"startingOffsets": '{"clicks":{"0":1}}'}
    by_timestamp = {"startingOffsetsByTimestamp": '{"clicks":{"0":1000}}', **offsets}
    assert options(**offsets).starting == OffsetLimit(offsets={CLICKS_0: 1})
    assert options(**by_timestamp).starting == OffsetLimit(timestamps={CLICKS_0: 1000})
    assert options(startingTimestamp="2000", **by_timestamp).starting == OffsetLimit(timestamp=2000)


def test_a_topic_may_be_named_as_a_whole() -> None:
    given = options(startingOffsets='{"orders":"earliest","clicks":{"0":7}}', endingOffsets='{"orders":"Latest"}')
    assert given.starting == OffsetLimit(offsets={CLICKS_0: 7}, topics={"orders": EARLIEST})
    assert given.ending == OffsetLimit(offsets={}, topics={"orders": LATEST})
    for side in ("startingOffsets", "endingOffsets"):
        with pytest.raises(
            InvalidOption, match=rf"'{side}' must be earliest, latest, or like .*\"topicC\":\"earliest\""
        ):
            options(**{side: '{"orders":"first"}'})


def test_a_batch_reads_from_earliest_to_latest_by_default() -> None:
    assert options().for_batch() == (OffsetLimit(everywhere=EARLIEST), OffsetLimit(everywhere=LATEST))


def test_a_stream_starts_at_the_latest_by_default() -> None:
    assert options().for_stream() == OffsetLimit(everywhere=LATEST)
    assert options(startingOffsets="earliest").for_stream() == OffsetLimit(everywhere=EARLIEST)


@pytest.mark.parametrize("latest", ["latest", '{"clicks":{"0":-1}}', '{"clicks":"latest"}'])
def test_a_batch_cannot_start_at_the_latest(latest: str) -> None:
    with pytest.raises(InvalidOption, match="cannot be latest"):
        options(startingOffsets=latest).for_batch()


@pytest.mark.parametrize("earliest", ["earliest", '{"clicks":{"0":-2}}', '{"clicks":"earliest"}'])
def test_a_batch_cannot_end_at_the_earliest(earliest: str) -> None:
    with pytest.raises(InvalidOption, match="cannot be earliest"):
        options(endingOffsets=earliest).for_batch()


@pytest.mark.parametrize(
    ("option", "value"), [("endingOffsets", "latest"), ("endingOffsetsByTimestamp", '{"clicks":{"0":5}}')]
)
def test_a_stream_takes_no_ending_offsets(option: str, value: str) -> None:
    with pytest.raises(InvalidOption, match="streaming"):
        options(**{option: value}).for_stream()


def test_an_ending_timestamp_is_ignored_in_a_stream_as_spark_s_source_ignores_it() -> None:
    assert options(endingTimestamp="5").for_stream() == OffsetLimit(everywhere=LATEST)


def test_a_table_of_the_catalog_is_refused_since_spark_forgets_its_options() -> None:
    with pytest.raises(InvalidOption, match="use CREATE TEMPORARY VIEW name USING kaspar"):
        options(provider="kaspar", option__subscribe="clicks")


def test_a_batch_cannot_start_behind_its_end() -> None:
    with pytest.raises(InvalidOption, match="starting offset 9 of clicks-0 is greater than its ending offset 4"):
        options(startingOffsets='{"clicks":{"0":9}}', endingOffsets='{"clicks":{"0":4}}').for_batch()
    with pytest.raises(InvalidOption, match="starting timestamp"):
        options(
            startingOffsetsByTimestamp='{"clicks":{"0":9}}', endingOffsetsByTimestamp='{"clicks":{"0":4}}'
        ).for_batch()
    options(startingOffsets='{"clicks":{"0":9}}', endingOffsets='{"clicks":{"0":-1}}').for_batch()


def test_start_and_end_of_a_batch_name_the_same_partitions() -> None:
    with pytest.raises(InvalidOption, match="only one names clicks-1"):
        options(startingOffsets='{"clicks":{"0":1}}', endingOffsets='{"clicks":{"0":4,"1":4}}').for_batch()
    options(startingOffsets='{"clicks":"earliest"}', endingOffsets='{"clicks":{"0":4,"1":4}}').for_batch()


@pytest.mark.parametrize(
    "text", ["first", "7", "[1]", '{"clicks":7}', '{"clicks":{"0":"seven"}}', '{"clicks":{"0":-3}}']
)
def test_offsets_that_are_none_are_refused(text: str) -> None:
    with pytest.raises(InvalidOption, match="startingOffsets"):
        options(startingOffsets=text)


# --- limits and the rest ----------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "expected_ms"),
    [
        ("15m", 900_000),
        ("200ms", 200),
        ("30s", 30_000),
        ("2h", 7_200_000),
        ("1min", 60_000),
        ("1d", 86_400_000),
        ("7", 7),
    ],
)
def test_a_length_of_time_is_read_as_spark_reads_it(text: str, expected_ms: int) -> None:
    assert options(maxTriggerDelay=text).max_trigger_delay_ms == expected_ms


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("maxOffsetsPerTrigger", "many"),
        ("minPartitions", "0"),
        ("maxRecordsPerPartition", "-1"),
        ("maxTriggerDelay", "soon"),
        ("failOnDataLoss", "yes"),
        ("includeHeaders", "1"),
        ("startingOffsetsByTimestampStrategy", "earliest"),
        ("kafka.isolation.level", "serializable"),
        ("startingTimestamp", "yesterday"),
        ("columns", "value,size"),
        ("columns", ","),
        ("splitPartitions", "never"),
    ],
)
def test_a_value_that_cannot_be_used_is_refused_by_its_option_s_name(name: str, value: str) -> None:
    with pytest.raises(InvalidOption, match=name):
        options(**{name.replace(".", "__"): value})


def test_the_least_of_a_trigger_is_not_above_its_most() -> None:
    with pytest.raises(InvalidOption, match="higher"):
        options(minOffsetsPerTrigger="11", maxOffsetsPerTrigger="10")


@pytest.mark.parametrize(
    "setting",
    ["auto.offset.reset", "key.deserializer", "value.deserializer", "enable.auto.commit", "interceptor.classes"],
)
def test_settings_of_the_consumer_that_spark_decides_itself_are_refused(setting: str) -> None:
    with pytest.raises(InvalidOption, match=setting):
        options(**{f"kafka__{setting.replace('.', '__')}": "x"})


def test_security_options_are_part_of_the_connection() -> None:
    security = options(kafka__security__protocol="ssl", kafka__ssl__truststore__location="/x").connection.security
    assert (security.protocol, dict(security.properties)["ssl.truststore.location"]) == ("SSL", "/x")
    assert options(kafka__security__protocol="plaintext").connection == options().connection


@pytest.mark.parametrize("servers", ["", "localhost", "localhost:", ":9092", "localhost:kafka", "localhost:65536"])
def test_the_cluster_s_address_must_be_given(servers: str) -> None:
    with pytest.raises(InvalidOption, match=r"kafka\.bootstrap\.servers"):
        options(kafka__bootstrap__servers=servers)


def test_several_addresses_can_be_given() -> None:
    assert options(kafka__bootstrap__servers="a:1, [::1]:2 ,").connection.bootstrap_servers == "a:1, [::1]:2 ,"


def test_columns_are_those_of_spark_s_source_and_headers_if_asked_for() -> None:
    assert options().columns == COLUMNS[:-1]
    assert options(includeHeaders="true").columns == COLUMNS
    assert options(columns="Value, timestamptype,value,headers").columns == ("value", "timestampType", "headers")


def test_offsets_are_committed_to_a_group_of_the_query_s_own_and_to_another_only_if_asked_for() -> None:
    assert options().commit_group_offsets
    assert options(groupIdPrefix="team").commit_group_offsets
    assert options(kafka__group__id=" ").commit_group_offsets, "that is none"
    assert not options(kafka__group__id="billing").commit_group_offsets
    assert options(kafka__group__id="billing", commitGroupOffsets="true").commit_group_offsets
    assert not options(commitGroupOffsets="false").commit_group_offsets


def test_a_text_may_be_committed_with_the_offsets() -> None:
    assert options().commit_group_metadata == ""
    assert options(commitGroupMetadata="run 7").commit_group_metadata == "run 7"


@pytest.mark.parametrize(
    ("given", "batch", "stream"), [("", True, False), ("true", True, True), ("false", False, False)]
)
def test_large_partitions_are_split_in_batches_and_not_in_streams_by_default(
    given: str, batch: bool, stream: bool
) -> None:
    read = options(splitPartitions=given) if given else options()
    assert parallelism(read, splits=True).splits is batch
    assert parallelism(read, splits=False).splits is stream


def test_an_option_that_is_nearly_right_is_refused() -> None:
    with pytest.raises(InvalidOption, match=r"Unknown option 'startingOffset'\. Did you mean 'startingOffsets'"):
        options(startingOffset="earliest")


def test_the_group_id_is_the_same_in_every_run_and_another_for_other_topics() -> None:
    assert options().group_id == options(maxOffsetsPerTrigger="5").group_id
    assert options().group_id != without_subscribe(subscribe="orders").group_id
    assert options(groupIdPrefix="team").group_id.startswith("team-")
    assert options(groupIdPrefix="team", kafka__group__id="mine").group_id == "mine"
