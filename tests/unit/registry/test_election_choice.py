"""Which member leads, by Confluent's rules."""

from kaspar.registry.election.choice import choose_leader
from kaspar.registry.election.identity import AssignmentError, Identity


def member(host: str, *, eligible: bool = True, leads: bool = False) -> Identity:
    return Identity("http", host, 8081, eligible, leads)


def test_eligible_member_with_the_smallest_url_leads() -> None:
    members = {"1": member("c"), "2": member("a", eligible=False), "3": member("b")}
    chosen = choose_leader(members, sticky=True)
    assert (chosen.leader_id, chosen.leader, chosen.error) == ("3", members["3"], AssignmentError.NONE)


def test_urls_are_compared_as_text() -> None:
    members = {"1": Identity("http", "a", 9000), "2": Identity("http", "a", 10_000)}
    assert choose_leader(members, sticky=True).leader_id == "2"


def test_leader_keeps_its_place_if_the_election_is_sticky() -> None:
    members = {"1": member("a"), "2": member("b", leads=True)}
    assert choose_leader(members, sticky=True).leader_id == "2"
    assert choose_leader(members, sticky=False).leader_id == "1"


def test_leader_that_is_no_longer_eligible_loses_its_place() -> None:
    members = {"1": member("a", eligible=False, leads=True), "2": member("b")}
    assert choose_leader(members, sticky=True).leader_id == "2"


def test_several_that_claim_to_lead_have_no_advantage() -> None:
    members = {"1": member("c", leads=True), "2": member("b", leads=True), "3": member("a")}
    assert choose_leader(members, sticky=True).leader_id == "3"


def test_group_without_eligible_members_has_no_leader() -> None:
    chosen = choose_leader({"1": member("a", eligible=False)}, sticky=True)
    assert (chosen.leader_id, chosen.leader, chosen.error) == (None, None, AssignmentError.NONE)


def test_two_members_with_one_url_are_an_error() -> None:
    chosen = choose_leader({"2": member("a"), "1": member("a")}, sticky=True)
    assert chosen.error == AssignmentError.DUPLICATE_URLS
    assert chosen.leader_id == "1"
