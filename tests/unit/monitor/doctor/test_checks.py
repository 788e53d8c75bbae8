"""Every check finds its fault, only its fault, and nothing in a healthy cluster."""

import re
from dataclasses import replace

import pytest

from kaspar.monitor.doctor.check import MOST_FAULTS, Check
from kaspar.monitor.doctor.checks import (
    ALL_CHECKS,
    balance,
    brokers,
    disks,
    durability,
    groups,
    load,
    replication,
    retention,
    security,
    topics,
    transactions,
)
from kaspar.monitor.doctor.doctor import findings
from kaspar.monitor.doctor.finding import Severity
from kaspar.monitor.doctor.looks import Looks
from kaspar.monitor.doctor.observation import GroupSeen, Observation
from tests.unit.monitor.doctor.faulty_looks import FAULTY, Faulty
from tests.unit.monitor.doctor.observations import (
    ORDERS,
    START_MS,
    look,
    looks,
    page,
    partition,
    seconds,
    topic,
    with_group,
    with_page,
    with_topic,
)

_MODULES = (balance, brokers, disks, durability, groups, load, replication, retention, security, topics, transactions)
_CASES = [
    pytest.param(code, case, id=f"{code}-{number}")
    for code, cases in FAULTY.items()
    for number, case in enumerate(cases)
]


def test_every_check_is_in_the_table_once_and_has_a_faulty_case() -> None:
    declared = [value for module in _MODULES for value in vars(module).values() if isinstance(value, Check)]
    assert sorted(check.code for check in declared) == sorted(check.code for check in ALL_CHECKS) == sorted(FAULTY)
    assert len({check.code for check in ALL_CHECKS}) == len(ALL_CHECKS)


@pytest.mark.parametrize(("code", "case"), _CASES)
def test_a_check_finds_its_fault_and_what_mends_it(code: str, case: Faulty) -> None:
    found = findings(case.looks.observations)
    assert {each.code for each in found} == {code, *case.also}
    first = next(each for each in found if each.code == code and each.resource == case.resource)
    assert case.detail in first.detail
    if case.command is None:
        assert first.command is None
    else:
        assert first.command is not None
        assert case.command in first.command


@pytest.mark.parametrize(("code", "case"), _CASES)
def test_a_finding_that_a_caller_without_rights_on_the_cluster_may_see_declares_the_topics_it_names(
    code: str, case: Faulty
) -> None:
    for each in findings(case.looks.observations):
        kind, _, name = each.resource.partition(" ")
        if kind in ("group", "topic", "partition"):
            declared = {name, name.rpartition("-")[0], *each.topics}
            said = re.findall(r"[\w.-]+", f"{each.detail} {each.command or ''}")
            named = {word.rstrip(".") for word in said} | {word.rpartition("-")[0] for word in said}
            assert named & case.looks.last.topics.keys() <= declared


@pytest.mark.parametrize(("code", "case"), _CASES)
def test_an_earlier_look_may_have_seen_nothing_of_what_is_there_now(code: str, case: Faulty) -> None:
    earlier = Observation(at_ms=START_MS - 10_000)
    found = findings((earlier, *case.looks.observations))
    catching_up = "under-replicated"  # until a replica was seen to be late at all looks
    assert {each.code for each in found} <= {code, *case.also, catching_up}


def test_growth_counts_from_the_first_look_that_saw_the_group() -> None:
    case = FAULTY["group-behind"][0]
    (alone,) = findings(case.looks.observations)
    (after_a_look_without_it,) = findings((replace(look(-10), groups={}), *case.looks.observations))
    assert after_a_look_without_it == alone


def test_a_group_that_reads_within_one_look_what_was_there_before_it_is_not_behind() -> None:
    """Its lag is what arrives between two commits, and may happen to grow a little at each look."""

    def jitter(seen: Observation) -> Observation:
        end = seen.ends[ORDERS].high_watermark
        return with_group(seen, GroupSeen("Stable", {ORDERS: end - 1 - seconds(seen) // 10}, members=1))

    assert findings(looks(jitter).observations) == ()


@pytest.mark.parametrize("count", [1, 2, 7])
def test_nothing_is_found_in_a_healthy_cluster(count: int) -> None:
    assert findings(looks(count=count).observations) == ()


def test_nothing_is_found_where_nothing_could_be_looked_at() -> None:
    assert findings([Observation(at_ms=0)]) == ()


def test_the_worst_comes_first() -> None:
    cases = [FAULTY[code][0].looks.last for code in ("log-dirs-in-tmp", "min-isr-one", "disk-almost-full")]
    merged = replace(cases[1], log_dirs={1: cases[0].log_dirs[2], 2: cases[2].log_dirs[2]})
    assert [each.severity for each in findings([merged])] == [Severity.PROBLEM, Severity.WARNING, Severity.NOTE]


def test_many_faults_of_one_kind_are_summed_up() -> None:
    last = look()
    for number in range(MOST_FAULTS + 3):
        last = with_group(last, GroupSeen("Empty", {ORDERS: 900}), name=f"group-{number:02}")
    found = findings([last])
    assert len(found) == MOST_FAULTS + 1
    assert found[-1].resource == "3 more"
    assert "group-12" in found[-1].detail


# --- what looks like a fault, and is none -----------------------------------------------------------------------------


def test_a_short_look_does_not_judge_a_consumer_between_two_commits() -> None:
    short = Looks(looks(lambda seen: with_group(seen, GroupSeen("Stable", {ORDERS: 600}))).observations[:2])
    assert findings(short.observations) == ()


def test_a_group_that_catches_up_is_fine() -> None:
    catching_up = looks(lambda seen: with_group(seen, GroupSeen("Stable", {ORDERS: 100 + 12 * seconds(seen)})))
    assert list(groups.group_behind.findings(catching_up)) == []


def test_a_reader_of_uncommitted_records_does_not_wait_for_a_transaction() -> None:
    def change(seen: Observation) -> Observation:
        ends = seen.ends[ORDERS]._replace(last_stable_offset=500)
        return with_group(seen, GroupSeen("Stable", {ORDERS: 600 + 4 * seconds(seen)}), ends)

    assert [each.code for each in findings(looks(change).observations)] == ["group-behind"]


def test_a_reader_of_committed_records_that_waits_for_a_transaction_is_not_stalled() -> None:
    """Its lag against the high watermark grows, and that against the last stable offset is zero."""

    def change(seen: Observation) -> Observation:
        ends = seen.ends[ORDERS]._replace(last_stable_offset=600)
        return with_group(seen, GroupSeen("Stable", {ORDERS: 600}), ends)

    assert list(groups.group_stalled.findings(looks(change))) == []


def test_a_replica_that_is_being_reassigned_is_not_missing() -> None:
    def change(seen: Observation) -> Observation:
        moving = with_topic(seen, topic("orders", partition(0, (1, 2, 3), isr=(1, 2))))
        return replace(moving, reassigning=frozenset({ORDERS}))

    assert findings(looks(change).observations) == ()


def test_one_busy_look_is_not_a_busy_broker() -> None:
    busy_once = looks(lambda seen: with_page(seen, page(HANDLERS_IDLE=0.05)) if seconds(seen) == 30 else seen)
    assert findings(busy_once.observations) == ()


def test_a_broker_that_has_just_started_may_have_stood_still() -> None:
    starting = page(LONGEST_STALL=3.5, START_TIME=START_MS / 1000 - 60)
    assert findings(looks(lambda seen: with_page(seen, starting)).observations) == ()


def test_topics_that_differ_in_a_number_are_no_mistake() -> None:
    case = FAULTY["misspelt-topic"][0].looks.last
    numbered = with_topic(case, replace(case.topics["paymnets"], name="payments2"))
    directory = replace(
        case.log_dirs[1][0], sizes={where: size for where, size in case.log_dirs[1][0].sizes.items() if size}
    )
    assert not [
        each for each in findings([replace(numbered, log_dirs={1: (directory,)})]) if "payments2" in each.resource
    ]


def test_a_single_broker_needs_no_replicas() -> None:
    lone = replace(look(), brokers={1: look().brokers[1]}, topics={"orders": topic("orders", partition(0, (1,)))})
    assert [each.code for each in findings([lone]) if each.code in ("one-replica", "default-replication")] == []


def test_small_segments_of_a_small_topic_do_no_harm() -> None:
    small = with_topic(look(), look().topics["orders"], segment_bytes="1048576", retention_ms="3600000")
    assert findings([small]) == ()
