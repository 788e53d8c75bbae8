"""The reason for a loss is named as precisely as it can be seen."""

import pytest

from kaspar.base.ids import TopicPartition
from kaspar.spark.reading.data_loss import DataLost, StartOfLog, removed, report

CLICKS = TopicPartition("clicks", 0)
WEEK = {"cleanup.policy": "delete", "retention.ms": "604800000", "retention.bytes": "-1"}


def test_a_log_that_starts_inside_a_batch_was_cut_by_delete_records() -> None:
    sentence = removed(CLICKS, 5, StartOfLog(42, first_base_offset=40, settings=WEEK))
    assert sentence.startswith("The records of clicks-0 from offset 5 to 41 are gone: DeleteRecords removed them")


@pytest.mark.parametrize(
    "settings",
    [
        {"cleanup.policy": "delete", "retention.ms": "-1", "retention.bytes": "-1"},
        {"cleanup.policy": "compact", "retention.ms": "604800000", "retention.bytes": "-1"},
    ],
)
def test_a_topic_without_retention_was_cut_by_delete_records(settings: dict[str, str]) -> None:
    assert "DeleteRecords removed them (the topic has no retention)" in removed(
        CLICKS, 5, StartOfLog(42, first_base_offset=42, settings=settings)
    )


def test_retention_is_named_with_its_settings() -> None:
    sentence = removed(CLICKS, 5, StartOfLog(42, first_base_offset=42, settings=WEEK))
    assert "retention removed them before they were read (retention.ms=604800000, retention.bytes=-1)" in sentence


def test_what_cannot_be_seen_is_not_guessed() -> None:
    assert removed(CLICKS, 5, StartOfLog(42)).endswith("retention or DeleteRecords removed them.")


def test_a_loss_stops_the_query_unless_it_may_go_on(caplog: pytest.LogCaptureFixture) -> None:
    with pytest.raises(DataLost, match=r"Gone\. The query stops because 'failOnDataLoss' is true"):
        report("Gone.", fail_on_data_loss=True, otherwise="goes on")
    report("Gone.", fail_on_data_loss=False, otherwise="goes on at offset 42")
    assert [record.getMessage() for record in caplog.records] == ["Gone. The query goes on at offset 42."]
