"""Features: levels go up, and down when asked so; all that a request names, or none; kept in the store."""

import asyncio
from pathlib import Path

import pytest

from kaspar.base.errors import ErrorCode
from kaspar.controller.events import DONE, FeatureOutcome, FeatureUpdate, Outcome, UpdateFeatures
from kaspar.controller.features import UpgradeType
from kaspar.controller.registration import register_broker
from kaspar.controller.shell import ControllerShell
from kaspar.metadata.features import FIRST_LEVELS, NEW_LEVELS, SUPPORTED
from kaspar.metadata.image import ClusterImage
from kaspar.metadata.layout import store_paths
from kaspar.metadata.loading import load_image, prepare_store
from kaspar.metadata.sqlite import SqliteMetadata
from kaspar.metadata.store import Delete
from tests.unit.controller.clusters import after, broker, controller

GROUP, TRANSACTION = "group.version", "transaction.version"
ELR = "eligible.leader.replicas.version"
UPGRADE, SAFE, UNSAFE = UpgradeType.UPGRADE, UpgradeType.SAFE_DOWNGRADE, UpgradeType.UNSAFE_DOWNGRADE


def image(**levels: int) -> ClusterImage:
    named = {name.replace("_", "."): level for name, level in levels.items()}
    return ClusterImage("cluster", features=named or dict(FIRST_LEVELS), features_epoch=5)


def change(
    before: ClusterImage, *updates: tuple[str, int, int], validate_only: bool = False
) -> tuple[ClusterImage, tuple[FeatureOutcome, ...]]:
    event = UpdateFeatures(tuple(FeatureUpdate(*update) for update in updates), validate_only)
    decision = controller().decide(before, event)
    return after(decision, before), decision.reply


def test_a_new_cluster_has_every_feature_at_its_highest_level() -> None:
    assert {name: supported.max_version for name, supported in SUPPORTED.items()} == NEW_LEVELS
    assert {**FIRST_LEVELS, ELR: 1} == NEW_LEVELS
    assert not image().has_elr, "one from before there were features"
    assert (image().transaction_version, image().group_version) == (2, 1)


def test_a_new_cluster_has_the_min_insync_replicas_of_its_first_broker_as_its_own_setting(tmp_path: Path) -> None:
    async def scenario() -> None:
        metadata = await SqliteMetadata.open(tmp_path)
        store = metadata.connect()
        for value in (2, 3):  # the second broker comes too late
            await prepare_store(store, "a-cluster", min_insync_replicas=value)
        loaded = await load_image(store)
        assert loaded.has_elr
        assert loaded.features == NEW_LEVELS
        assert loaded.cluster_broker_config == {"min.insync.replicas": "2"}
        await metadata.close()

    asyncio.run(scenario())


@pytest.mark.parametrize("way", [SAFE, UNSAFE])
def test_a_level_goes_down_when_asked_so_and_up_again(way: UpgradeType) -> None:
    lower, reply = change(image(), (TRANSACTION, 1, way))
    assert reply == (FeatureOutcome(TRANSACTION, DONE),)
    assert (lower.transaction_version, lower.group_version, lower.features_epoch) == (1, 1, 6)
    higher, _ = change(lower, (TRANSACTION, 2, UPGRADE))
    assert (higher.transaction_version, higher.features_epoch) == (2, 7)


def test_level_0_is_the_same_as_not_having_the_feature() -> None:
    without, _ = change(image(), (GROUP, 0, SAFE))
    assert without.group_version == 0
    assert GROUP not in without.features


def test_a_level_that_stays_changes_nothing() -> None:
    same, reply = change(image(), (GROUP, 1, UPGRADE), (TRANSACTION, 2, SAFE))
    assert {each.outcome for each in reply} == {DONE}
    assert same.features_epoch == 5


@pytest.mark.parametrize(
    ("update", "reason"),
    [
        ((GROUP, 0, UPGRADE), "without setting the upgrade type"),
        ((GROUP, 0, UpgradeType.UNKNOWN), "does not support the given upgrade type"),
        ((GROUP, 0, 9), "does not support the given upgrade type"),
        ((GROUP, -1, SAFE), "cannot be less than 0"),
        ((GROUP, 2, UPGRADE), "only supports versions 0-1"),
        (("metadata.version", 1, SAFE), "only supports versions"),
        (("share.version", 1, UPGRADE), "does not support this feature"),
        (("nothing.such", 1, UPGRADE), "does not support this feature"),
    ],
)
def test_what_cannot_be_is_refused_with_kafkas_sentence(update: tuple[str, int, int], reason: str) -> None:
    after_it, ((name, outcome),) = (
        change(image(), update)[0],
        [(each.name, each.outcome) for each in change(image(), update)[1]],
    )
    assert name == update[0]
    assert outcome.error is ErrorCode.INVALID_UPDATE_VERSION
    assert outcome.message is not None
    assert reason in outcome.message
    assert outcome.message.startswith(f"Invalid update version {update[1]} for feature {update[0]}. ")
    assert after_it == image()


def test_going_up_is_no_downgrade() -> None:
    _, (reply,) = change(image(transaction_version=1), (TRANSACTION, 2, SAFE))
    assert reply.outcome == Outcome(
        ErrorCode.INVALID_UPDATE_VERSION,
        "Invalid update version 2 for feature transaction.version. Can't downgrade to a newer version.",
    )


def test_if_one_level_cannot_be_changed_none_is() -> None:
    same, (good, bad) = change(image(), (TRANSACTION, 1, SAFE), (GROUP, 7, UPGRADE))
    assert good.outcome == DONE
    assert bad.outcome.error is ErrorCode.INVALID_UPDATE_VERSION
    assert same == image()


def test_a_request_that_only_validates_changes_nothing() -> None:
    same, reply = change(image(), (TRANSACTION, 0, SAFE), validate_only=True)
    assert reply == (FeatureOutcome(TRANSACTION, DONE),)
    assert same == image()


def test_levels_are_kept_in_the_store(tmp_path: Path) -> None:
    async def scenario() -> None:
        metadata = await SqliteMetadata.open(tmp_path)
        store = metadata.connect()
        await prepare_store(store)
        await register_broker(store, broker(1, clean_start=True), retry_delay_s=0)
        shell = ControllerShell(store, controller(), retry_delay_s=0)
        await shell.start()
        await shell.submit(UpdateFeatures((FeatureUpdate(TRANSACTION, 1, SAFE), FeatureUpdate(GROUP, 0, SAFE))))
        await shell.stop()
        await metadata.close()
        again = await SqliteMetadata.open(tmp_path)
        loaded = await load_image(again.connect())
        assert (loaded.transaction_version, loaded.group_version, loaded.features_epoch) == (1, 0, 1)
        await again.close()

    asyncio.run(scenario())


def test_a_store_from_before_there_were_features_gets_the_first_levels(tmp_path: Path) -> None:
    async def scenario() -> None:
        metadata = await SqliteMetadata.open(tmp_path)
        store = metadata.connect()
        await prepare_store(store, "a-cluster")
        await store.transact([Delete(store_paths.FEATURES)])
        await prepare_store(store, "another")
        loaded = await load_image(store)
        assert (loaded.cluster_id, loaded.features, loaded.features_epoch) == ("a-cluster", FIRST_LEVELS, 0)
        await metadata.close()

    asyncio.run(scenario())
