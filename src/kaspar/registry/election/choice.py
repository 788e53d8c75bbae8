"""Chooses the leader of a group, by the rules of Confluent's SchemaRegistryCoordinator. Pure.

The leader is the eligible member with the smallest URL. If the election is sticky, a member that already leads stays
the leader; if several members claim to lead, their claims are ignored. Two members with the same URL are an error that
is reported to all members: a forwarded write might reach either of them.
"""

from collections.abc import Mapping

from kaspar.registry.election.identity import Assignment, AssignmentError, Identity


def choose_leader(members: Mapping[str, Identity], *, sticky: bool) -> Assignment:
    """Returns the assignment for all members. `members` are identities by member id."""
    urls = {identity.url for identity in members.values()}
    error = AssignmentError.NONE if len(urls) == len(members) else AssignmentError.DUPLICATE_URLS
    eligible = {member_id: identity for member_id, identity in members.items() if identity.leader_eligibility}
    if not eligible:
        return Assignment(error)
    leaders = [member_id for member_id, identity in eligible.items() if identity.is_leader]
    if sticky and len(leaders) == 1:
        return Assignment(error, leaders[0], eligible[leaders[0]])
    # The member id breaks ties between equal URLs, so that the result does not depend on the order of members.
    smallest = min(eligible, key=lambda member_id: (eligible[member_id].url, member_id))
    return Assignment(error, smallest, eligible[smallest])
