"""Which member of the group leads, by the rules of Confluent's SchemaRegistryCoordinator. Pure.

The member with the smallest URL leads, of those that are eligible. A member that leads already stays the leader if the
election is sticky; if several claim that, their claims are ignored. Two members with the same URL are an error that is
reported to all: a write forwarded to that URL might reach either.
"""

from collections.abc import Mapping

from kaspar.registry.election.identity import Assignment, AssignmentError, Identity


def choose_leader(members: Mapping[str, Identity], *, sticky: bool) -> Assignment:
    """`members` are the identities by member id."""
    urls = {identity.url for identity in members.values()}
    error = AssignmentError.NONE if len(urls) == len(members) else AssignmentError.DUPLICATE_URLS
    eligible = {member_id: identity for member_id, identity in members.items() if identity.leader_eligibility}
    if not eligible:
        return Assignment(error)
    leaders = [member_id for member_id, identity in eligible.items() if identity.is_leader]
    if sticky and len(leaders) == 1:
        return Assignment(error, leaders[0], eligible[leaders[0]])
    # The member id decides between members with one URL, so that the order of the members does not.
    smallest = min(eligible, key=lambda member_id: (eligible[member_id].url, member_id))
    return Assignment(error, smallest, eligible[smallest])
