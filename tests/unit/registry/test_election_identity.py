"""The JSON that members of a registry's group exchange: Confluent's and Karapace's is read, and ours is theirs."""

import json

import pytest

from kaspar.registry.election.identity import Assignment, AssignmentError, Identity, NotInstanceJson

CONFLUENT_IDENTITY = (
    b'{"host":"sr-1.example.org","port":8081,"master_eligibility":true,"scheme":"https","version":1,"leader":false}'
)
KARAPACE_IDENTITY = (
    b'{"version":2,"karapace_version":"4.0.0","host":"10.0.0.7","port":8082,"scheme":"http","master_eligibility":true}'
)
CONFLUENT_ASSIGNMENT = (
    b'{"error":0,"master":"sr-1-0d2b","master_identity":{"host":"sr-1.example.org","port":8081,'
    b'"master_eligibility":true,"scheme":"https","version":1},"version":1}'
)


def test_identity_of_a_confluent_instance_is_read() -> None:
    identity = Identity.decode(CONFLUENT_IDENTITY)
    assert identity == Identity("https", "sr-1.example.org", 8081, leader_eligibility=True, is_leader=False)
    assert identity.url == "https://sr-1.example.org:8081"


def test_identity_of_a_karapace_instance_is_read() -> None:
    assert Identity.decode(KARAPACE_IDENTITY) == Identity("http", "10.0.0.7", 8082, leader_eligibility=True)


def test_identity_is_written_with_confluents_fields() -> None:
    written = Identity("http", "a", 8081, leader_eligibility=False, is_leader=True).encode()
    assert json.loads(written) == {
        "version": 1,
        "host": "a",
        "port": 8081,
        "master_eligibility": False,
        "scheme": "http",
        "leader": True,
    }


def test_identity_without_scheme_is_http_and_without_eligibility_may_not_lead() -> None:
    assert Identity.decode(b'{"host":"a","port":1}') == Identity("http", "a", 1, leader_eligibility=False)


def test_url_of_an_ipv6_host_has_brackets() -> None:
    assert Identity("http", "::1", 8081).url == "http://[::1]:8081"


def test_assignment_of_a_confluent_instance_is_read() -> None:
    assignment = Assignment.decode(CONFLUENT_ASSIGNMENT)
    assert assignment.error == AssignmentError.NONE
    assert assignment.leader_id == "sr-1-0d2b"
    assert assignment.leader == Identity("https", "sr-1.example.org", 8081)


def test_assignment_is_written_with_confluents_fields() -> None:
    leader = Identity("http", "a", 8081)
    written = Assignment(AssignmentError.NONE, "m", leader).encode()
    assert json.loads(written) == {"version": 1, "error": 0, "master": "m", "master_identity": leader.to_json()}
    assert Assignment.decode(written) == Assignment(AssignmentError.NONE, "m", leader)


def test_assignment_without_leader_has_none_of_its_fields() -> None:
    written = Assignment(AssignmentError.DUPLICATE_URLS).encode()
    assert json.loads(written) == {"version": 1, "error": 1}
    assert Assignment.decode(written) == Assignment(AssignmentError.DUPLICATE_URLS)


@pytest.mark.parametrize(
    "data",
    [
        b"",
        b"\xff",
        b"[]",
        b"{}",
        b'{"host":"a"}',
        b'{"host":"","port":1}',
        b'{"host":1,"port":1}',
        b'{"host":"a","port":70000}',
        b'{"host":"a","port":"1"}',
        b'{"host":"a","port":1,"scheme":7}',
        b"[" * 100_000,
    ],
)
def test_other_bytes_are_no_identity(data: bytes) -> None:
    with pytest.raises(NotInstanceJson):
        Identity.decode(data)


@pytest.mark.parametrize("data", [b"", b"7", b'{"error":"x"}', b'{"error":0,"master":"m","master_identity":7}'])
def test_other_bytes_are_no_assignment(data: bytes) -> None:
    with pytest.raises(NotInstanceJson):
        Assignment.decode(data)
