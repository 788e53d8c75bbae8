"""Who leads, who is in sync and who is eligible: KIP-966 and Kafka's PartitionChangeBuilder."""

import uuid
from dataclasses import replace

import pytest

from kaspar.base.errors import Refused
from kaspar.base.ids import BrokerId, LeaderEpoch
from kaspar.controller.events import (
    AlterConfigs,
    AlterReassignments,
    AssignDirectories,
    ConfigChange,
    ConfigOperation,
    ConfigResource,
    DirectoriesFailed,
    ElectionType,
    ElectLeaders,
    FeatureUpdate,
    LogsLost,
    Reassignment,
    ResourceType,
    UpdateFeatures,
)
from kaspar.controller.features import UpgradeType
from kaspar.metadata.image import ELIGIBLE_LEADER_REPLICAS_VERSION, NO_LEADER, ClusterImage, PartitionImage
from kaspar.metadata.layout import broker_nodes, store_paths
from kaspar.metadata.store import Put
from tests.unit.controller.clusters import broker, controller
from tests.unit.controller.partitions import (
    ONE,
    THREE,
    TWO,
    altered,
    back,
    decided,
    fenced,
    of_three,
    partition,
    seen,
    with_partition,
)

ALL = (ONE, TWO, THREE)


def configured(image: ClusterImage, name: str, value: str | None, topic: str = "t") -> ClusterImage:
    resource = ConfigResource(ResourceType.TOPIC if topic else ResourceType.BROKER, topic)
    operation = ConfigOperation.set(name, value) if value is not None else ConfigOperation(name, 1, None)
    return decided(image, AlterConfigs((ConfigChange(resource, (operation,)),)))


# -- without eligible leader replicas --------------------------------------------------------------------------------


def test_a_follower_that_is_down_leaves_the_in_sync_replicas_and_the_leader_goes_on() -> None:
    image = seen(of_three(), broker(1), broker(3))
    assert partition(image) == PartitionImage(ALL, (ONE, THREE), ONE, LeaderEpoch(0), 1)


def test_a_leader_that_crashed_and_is_back_hands_over_to_a_replica_that_did_not() -> None:
    image = back(of_three(), broker(1, epoch=9))
    assert partition(image) == PartitionImage(ALL, (TWO, THREE), TWO, LeaderEpoch(1), 1)


def test_a_follower_that_crashed_and_is_back_leaves_the_in_sync_replicas() -> None:
    image = back(of_three(), broker(3, epoch=9))
    assert partition(image) == PartitionImage(ALL, (ONE, TWO), ONE, LeaderEpoch(0), 1)


def test_a_follower_that_was_restarted_cleanly_between_two_looks_stays_in_sync() -> None:
    image = back(of_three(), broker(3, epoch=9, clean_start=True))
    assert partition(image) == partition(of_three())


def test_if_all_in_sync_replicas_crashed_the_leader_leads_alone_in_a_new_epoch() -> None:
    image = back(of_three(), broker(1, epoch=9), broker(2, epoch=9), broker(3, epoch=9))
    assert partition(image) == PartitionImage(ALL, (ONE,), ONE, LeaderEpoch(1), 1)


def test_in_sync_replicas_that_go_down_together_can_each_lead_when_they_are_back() -> None:
    image = seen(of_three(), broker(4))
    assert partition(image) == PartitionImage(ALL, ALL, NO_LEADER, LeaderEpoch(1), 1)
    image = back(image, broker(2, epoch=9, clean_start=True))
    assert partition(image) == PartitionImage(ALL, (TWO,), TWO, LeaderEpoch(2), 2)


def test_a_replica_that_crashed_waits_for_those_in_sync_that_are_down() -> None:
    image = back(seen(of_three(), broker(4)), broker(2, epoch=9))
    assert partition(image) == PartitionImage(ALL, (ONE, THREE), NO_LEADER, LeaderEpoch(1), 2)


def test_a_start_that_was_missed_counts_if_it_followed_a_crash() -> None:
    clean = broker(3, epoch=9, clean_start=True)
    assert partition(back(of_three(), replace(clean, incarnation=1))).isr == ALL
    assert partition(back(of_three(), replace(clean, incarnation=2))).isr == ALL
    assert partition(back(of_three(), replace(clean, incarnation=2, last_crash=1))).isr == (ONE, TWO)


@pytest.mark.parametrize("of_cluster", [False, True])
def test_an_unclean_election_is_held_where_it_is_allowed(of_cluster: bool) -> None:
    alone, _ = altered(of_three(), 1)
    assert partition(fenced(alone, 1)).leader == NO_LEADER
    allowed = configured(alone, "unclean.leader.election.enable", "true", "" if of_cluster else "t")
    assert partition(fenced(allowed, 1)) == PartitionImage(ALL, (TWO,), TWO, LeaderEpoch(1), 2)


@pytest.mark.parametrize("of_cluster", [False, True])
def test_allowing_unclean_elections_holds_them_at_once_where_there_is_no_leader(of_cluster: bool) -> None:
    image = fenced(altered(of_three(), 1)[0], 1)
    image = configured(image, "unclean.leader.election.enable", "true", "" if of_cluster else "t")
    assert partition(image) == PartitionImage(ALL, (TWO,), TWO, LeaderEpoch(2), 3)


def test_a_topics_own_setting_counts_before_that_of_the_cluster() -> None:
    image = configured(of_three(unclean_leader_election_enable="false"), "unclean.leader.election.enable", "true", "")
    assert partition(fenced(altered(image, 1)[0], 1)).leader == NO_LEADER


def test_a_leader_whose_log_directory_is_away_hands_over_to_one_who_has_its_own() -> None:
    here, other = uuid.UUID(int=7), uuid.UUID(int=8)
    image = with_partition(of_three(), directories=(here, here, here))
    restarted = broker(1, epoch=9, clean_start=True, log_dirs=(other,))
    assert partition(back(image, restarted)).leader == TWO
    assert partition(back(image, broker(1, epoch=9, clean_start=True, log_dirs=(here, other)))).leader == ONE
    alone, _ = altered(image, 1)
    assert partition(back(alone, restarted)) == partition(alone), "nobody else can lead"


def without_directory(image: ClusterImage) -> ClusterImage:
    """Broker 1 is the only one in sync, and the directory of its log has failed."""
    here, other = uuid.UUID(int=7), uuid.UUID(int=8)
    image = with_partition(image, directories=(here, here, here))
    image = altered(back(image, broker(1, epoch=9, clean_start=True, log_dirs=(here, other))), 1)[0]
    return decided(image, DirectoriesFailed(ONE, 9, (here,)))


@pytest.mark.parametrize("elr", [False, True])
def test_the_last_in_sync_replica_whose_directory_fails_is_replaced_only_if_that_is_allowed(elr: bool) -> None:
    image = without_directory(of_three(elr=elr, min_insync_replicas="1"))
    assert (partition(image).leader, partition(image).isr) == (ONE, (ONE,))
    later = configured(image, "unclean.leader.election.enable", "true")
    asked = decided(image, ElectLeaders(ElectionType.UNCLEAN, (("t", 0),)))
    at_once = without_directory(of_three(elr=elr, min_insync_replicas="1", unclean_leader_election_enable="true"))
    for elected in (later, asked, at_once):
        assert (partition(elected).leader, partition(elected).isr) == (TWO, (TWO,))
        assert partition(elected).leader_epoch == partition(image).leader_epoch + 1


def test_the_last_in_sync_replica_whose_directory_fails_is_replaced_by_one_that_comes_back() -> None:
    here, other = uuid.UUID(int=7), uuid.UUID(int=8)
    image = with_partition(of_three(unclean_leader_election_enable="true"), directories=(here, here, here))
    image = fenced(back(image, broker(1, epoch=9, clean_start=True, log_dirs=(here, other))), 2, 3)
    image = decided(image, DirectoriesFailed(ONE, 9, (here,)))
    assert partition(image).leader == ONE
    assert partition(back(image, broker(3, epoch=10, log_dirs=(here,)))).leader == THREE


def test_an_eligible_replica_is_elected_before_any_other_when_the_leaders_directory_has_failed() -> None:
    here, other = uuid.UUID(int=7), uuid.UUID(int=8)
    image = with_partition(of_three(elr=True, min_insync_replicas="2"), directories=(here, here, here))
    image = back(image, broker(1, epoch=9, clean_start=True, log_dirs=(here, other)))
    image = fenced(altered(image, 1, 3)[0], 3)
    assert (partition(image).isr, partition(image).elr) == ((ONE,), (THREE,))
    image = decided(image, DirectoriesFailed(ONE, 9, (here,)))
    assert partition(image).leader == ONE
    back_again = broker(3, epoch=10, clean_start=True, log_dirs=(here,))
    assert partition(back(image, back_again)).leader == THREE


def test_a_leader_hands_over_if_it_says_later_that_its_log_was_in_the_directory_that_failed() -> None:
    here, other = uuid.UUID(int=7), uuid.UUID(int=8)
    image = back(of_three(), broker(1, epoch=9, clean_start=True, log_dirs=(here, other)))
    image = decided(image, DirectoriesFailed(ONE, 9, (here,)))
    assert partition(image).leader == ONE, "nobody knows where its log is"
    topic_id = image.topics["t"].topic_id
    image = decided(image, AssignDirectories(ONE, ((topic_id, 0, here),)))
    assert (partition(image).leader, partition(image).isr) == (TWO, (TWO, THREE))
    assert partition(image).directory_of(ONE) == here


def test_a_leader_whose_log_directory_fails_hands_over() -> None:
    here, other = uuid.UUID(int=7), uuid.UUID(int=8)
    image = with_partition(of_three(), directories=(here, here, here))
    image = back(image, broker(1, epoch=9, clean_start=True, log_dirs=(here, other)))
    (step,) = controller().decide(image, DirectoriesFailed(ONE, 9, (here,))).steps
    assert (partition(step.image).leader, partition(step.image).isr) == (TWO, (TWO, THREE))
    stored = next(each for each in step.operations if each.path.startswith(store_paths.BROKER_IDS))
    assert isinstance(stored, Put)
    registration = broker_nodes.decode_registration(ONE, 0, 9, stored.value)
    assert registration == step.image.brokers[ONE], "a later controller knows of it too"
    assert registration.log_dirs == (other,)
    assert not controller().decide(step.image, DirectoriesFailed(ONE, 9, (here,))).steps, "it is known"
    with pytest.raises(Refused, match="is not up in epoch 8"):
        controller().decide(image, DirectoriesFailed(ONE, 8, (here,)))


# -- eligible leader replicas (KIP-966) ------------------------------------------------------------------------------


def test_replicas_that_leave_while_too_few_are_in_sync_stay_eligible() -> None:
    image = of_three(elr=True, min_insync_replicas="2")
    image, _ = altered(image, 1, 2)
    assert partition(image).elr == (), "two are enough"
    image, _ = altered(image, 1)
    assert partition(image) == PartitionImage(ALL, (ONE,), ONE, LeaderEpoch(0), 2, (TWO,))
    image, _ = altered(image, 1, 3)
    assert partition(image) == PartitionImage(ALL, (ONE, THREE), ONE, LeaderEpoch(0), 3), "records are committed again"


def test_min_insync_replicas_counts_at_most_the_replicas_there_are() -> None:
    image = of_three(elr=True, min_insync_replicas="5")
    assert partition(altered(image, 1, 2)[0]).elr == (THREE,)
    image = of_three(elr=True, min_insync_replicas="1")
    assert partition(altered(image, 1)[0]).elr == ()


def test_the_last_in_sync_replica_that_is_fenced_becomes_eligible_and_no_other_leads() -> None:
    image = fenced(altered(of_three(elr=True), 1)[0], 1)
    assert partition(image) == PartitionImage(ALL, (), NO_LEADER, LeaderEpoch(1), 2, (ONE,), (ONE,))
    image = back(image, broker(1, epoch=9, clean_start=True))
    assert partition(image) == PartitionImage(ALL, (ONE,), ONE, LeaderEpoch(2), 3)


def test_an_eligible_replica_is_elected_when_none_is_in_sync() -> None:
    image, _ = altered(of_three(elr=True, min_insync_replicas="2"), 1)
    assert partition(image).elr == (TWO, THREE)
    image = fenced(image, 1)
    assert partition(image) == PartitionImage(ALL, (TWO,), TWO, LeaderEpoch(1), 2, (ONE, THREE))


def test_an_eligible_replica_that_crashed_is_not_eligible_any_more() -> None:
    image, _ = altered(of_three(elr=True, min_insync_replicas="2"), 1)
    image = back(fenced(image, 2), broker(2, epoch=9))
    assert partition(image).elr == (THREE,)
    image = fenced(image, 3, 1)
    assert (partition(image).leader, partition(image).elr) == (NO_LEADER, (ONE, THREE))


def test_the_last_leader_leads_again_when_all_that_were_eligible_crashed() -> None:
    image = fenced(of_three(elr=True, min_insync_replicas="2"), 1, 2, 3)
    assert (partition(image).elr, partition(image).last_known_elr) == (ALL, (ONE,))
    image = back(image, broker(2, epoch=9))
    image = back(image, broker(3, epoch=10))
    assert (partition(image).leader, partition(image).elr) == (NO_LEADER, (ONE,))
    image = back(image, broker(1, epoch=11))
    assert partition(image)._replace(partition_epoch=0) == PartitionImage(ALL, (ONE,), ONE, LeaderEpoch(2), 0)


def test_a_leader_that_crashed_as_the_only_one_in_sync_leads_in_a_new_epoch() -> None:
    image = back(altered(of_three(elr=True), 1)[0], broker(1, epoch=9))
    assert partition(image) == PartitionImage(ALL, (ONE,), ONE, LeaderEpoch(1), 2)


@pytest.mark.parametrize("of_cluster", [False, True])
@pytest.mark.parametrize("value", ["1", "3"])
def test_another_min_insync_replicas_forgets_the_eligible_replicas(value: str, of_cluster: bool) -> None:
    image = configured(of_three(elr=True), "min.insync.replicas", "2", "")
    image, _ = altered(image, 1)
    assert partition(image).elr == (TWO, THREE)
    changed = configured(image, "min.insync.replicas", value, "" if of_cluster else "t")
    assert partition(changed).elr == ()
    assert partition(changed).partition_epoch == partition(image).partition_epoch + 1
    same = configured(image, "min.insync.replicas", "2", "")
    assert partition(same) == partition(image)


def test_eligible_replicas_are_not_forgotten_where_none_is_in_sync() -> None:
    """Unlike Kafka, which would leave the partition without any replica to elect."""
    image = fenced(altered(of_three(elr=True, min_insync_replicas="2"), 1)[0], 1, 2, 3)
    image = configured(image, "min.insync.replicas", "1")
    assert partition(image).elr == ALL
    image = back(image, broker(3, epoch=9, clean_start=True))
    assert (partition(image).isr, partition(image).elr) == ((THREE,), ()), "one is enough now"


def test_the_eligible_replicas_are_forgotten_in_the_transactions_before_the_setting_changes() -> None:
    image, _ = altered(configured(of_three(elr=True), "min.insync.replicas", "2", ""), 1)
    resource = ConfigResource(ResourceType.BROKER, "")
    event = AlterConfigs((ConfigChange(resource, (ConfigOperation.set("min.insync.replicas", "1"),)),))
    paths = [operation.path for step in controller().decide(image, event).steps for operation in step.operations]
    assert paths == ["/topics/t", "/configs/brokers/<default>"]


def test_min_insync_replicas_is_the_same_for_all_brokers_while_replicas_are_eligible() -> None:
    image = configured(of_three(elr=True), "min.insync.replicas", "2", "")
    for name, operation, sentence in (
        ("1", ConfigOperation.set("min.insync.replicas", "1"), "Broker-level min.insync.replicas cannot be altered"),
        ("", ConfigOperation("min.insync.replicas", 1, None), "Cluster-level min.insync.replicas cannot be removed"),
    ):
        event = AlterConfigs((ConfigChange(ConfigResource(ResourceType.BROKER, name), (operation,)),))
        (reply,) = controller().decide(image, event).reply
        assert reply.outcome.message == f"{sentence} while ELR is enabled."


def test_turning_the_feature_on_gives_the_cluster_one_min_insync_replicas() -> None:
    """Kafka's ConfigurationControlManager.maybeGenerateElrSafetyRecords."""
    image = configured(of_three(), "min.insync.replicas", "3", "")
    on = UpdateFeatures((FeatureUpdate(ELIGIBLE_LEADER_REPLICAS_VERSION, 1, UpgradeType.UPGRADE),))
    assert decided(image, on).cluster_broker_config == {"min.insync.replicas": "3"}
    image = replace(of_three(), broker_configs={"1": {"min.insync.replicas": "2"}})
    turned_on = controller(min_insync_replicas="4").decide(image, on).steps[-1].image
    assert turned_on.has_elr
    assert turned_on.broker_configs == {"": {"min.insync.replicas": "4"}}


def test_turning_the_feature_off_keeps_every_partition_electable() -> None:
    image = fenced(altered(of_three(elr=True, min_insync_replicas="2"), 1)[0], 1, 2, 3)
    off = UpdateFeatures((FeatureUpdate(ELIGIBLE_LEADER_REPLICAS_VERSION, 0, UpgradeType.SAFE_DOWNGRADE),))
    image = decided(image, off)
    assert (partition(image).isr, partition(image).elr, partition(image).last_known_elr) == (ALL, (), ())
    assert partition(back(image, broker(2, epoch=9, clean_start=True))).leader == TWO


# -- lost logs -------------------------------------------------------------------------------------------------------


def lose(image: ClusterImage, broker_id: int) -> ClusterImage:
    return decided(image, LogsLost(BrokerId(broker_id), ((image.topics["t"].topic_id, 0),)))


@pytest.mark.parametrize("elr", [False, True])
def test_the_last_replica_with_the_records_does_not_give_its_log_up_unless_that_is_allowed(elr: bool) -> None:
    image = altered(of_three(elr=elr), 1)[0]
    event = LogsLost(ONE, ((image.topics["t"].topic_id, 0),))
    refused = controller().decide(image, event)
    assert (refused.reply, refused.steps) == ((), ())
    allowed = controller().decide(configured(image, "unclean.leader.election.enable", "true"), event)
    assert allowed.reply == event.partitions
    lost = allowed.steps[-1].image
    assert partition(lost) == PartitionImage(ALL, (TWO,), TWO, LeaderEpoch(1), 2)


def test_a_reassignment_that_overtakes_the_report_of_a_lost_log_elects_nobody_with_an_empty_log() -> None:
    """The broker saw other replicas in sync, and asked to give its log up. They have left when the controller hears of
    it: an empty log must not lead, since the lost one may be brought back.
    """
    image = of_three()
    event = LogsLost(ONE, ((image.topics["t"].topic_id, 0),))
    assert controller().decide(image, event).reply == event.partitions, "as long as there are others"
    alone = decided(image, AlterReassignments((Reassignment("t", 0, (1,)),)))
    assert (partition(alone).replicas, partition(alone).leader) == ((ONE,), ONE)
    decision = controller().decide(alone, event)
    assert (decision.reply, decision.steps) == ((), ())


def test_the_last_known_leader_that_lost_its_log_is_not_elected() -> None:
    image = with_partition(of_three(elr=True), isr=(), elr=(), leader=NO_LEADER, last_known_elr=(ONE,))
    event = LogsLost(ONE, ((image.topics["t"].topic_id, 0),))
    assert controller().decide(image, event).reply == ()
    allowed = configured(image, "unclean.leader.election.enable", "true")
    assert partition(decided(allowed, event)).last_known_elr == ()


def test_leaders_that_change_before_the_report_of_a_lost_log_elect_nobody_with_an_empty_log() -> None:
    image = fenced(of_three(), 2, 3)
    assert partition(image).isr == (ONE,)
    decision = controller().decide(image, LogsLost(ONE, ((image.topics["t"].topic_id, 0),)))
    assert (decision.reply, decision.steps) == ((), ())


def test_a_replica_that_lost_its_log_comes_last_in_an_unclean_election() -> None:
    image = lose(altered(of_three(unclean_leader_election_enable="true"), 1)[0], 1)
    assert partition(image) == PartitionImage(ALL, (TWO,), TWO, LeaderEpoch(1), 2)


def test_an_eligible_replica_that_lost_its_log_is_not_eligible_any_more() -> None:
    image, _ = altered(of_three(elr=True, min_insync_replicas="2"), 1)
    assert partition(lose(image, 2)).elr == (THREE,)
