"""Several instances on one topic: who leads, who forwards, and how the place of the leader is passed on."""

from pathlib import Path

import httpx

from tests.integration.registry.instances import (
    NOT_FORWARDED,
    Registry,
    leader_of,
    record_schema,
    registries,
    wait_until,
)
from tests.peers.kaspar import KasparProcess


def follower_of(instances: list[Registry]) -> Registry:
    leader = leader_of(instances)
    return next(instance for instance in instances if instance is not leader)


def test_follower_forwards_writes_and_serves_reads_itself(
    broker: KasparProcess, settings: dict[str, str], tmp_path: Path
) -> None:
    with registries(tmp_path, broker.bootstrap, 2, settings) as instances:
        leader, follower = leader_of(instances), follower_of(instances)
        schema_id = follower.register("orders", record_schema("Order"))
        assert follower.get(f"/schemas/ids/{schema_id}") == leader.get(f"/schemas/ids/{schema_id}")
        assert leader.register("orders", record_schema("Order")) == schema_id
        # What the leader refuses is refused by the follower in the same words.
        body = {"schema": '{"type":"nonsense"}'}
        refused = [each.http.post("/subjects/orders/versions", json=body) for each in (leader, follower)]
        assert [each.status_code for each in refused] == [422, 422]
        assert refused[0].json() == refused[1].json()
        leader.kill()
        assert follower.get("/subjects") == ["orders"]


def test_request_that_was_forwarded_once_is_not_forwarded_again(
    broker: KasparProcess, settings: dict[str, str], tmp_path: Path
) -> None:
    with registries(tmp_path, broker.bootstrap, 2, settings) as instances:
        follower = follower_of(instances)
        response = follower.http.post(
            "/subjects/orders/versions", json={"schema": record_schema("Order")}, headers=NOT_FORWARDED
        )
        assert (response.status_code, response.json()["error_code"]) == (500, 50004)


def test_leader_that_stops_passes_its_place_on_at_once(
    broker: KasparProcess, settings: dict[str, str], tmp_path: Path
) -> None:
    """Long before the session of the one that left would end."""
    patient = {**settings, "kafkagroup.session.timeout.ms": "60000"}
    with registries(tmp_path, broker.bootstrap, 2, patient) as instances:
        leader, follower = leader_of(instances), follower_of(instances)
        first = leader.register("orders", record_schema("Order"))
        assert leader.stop() == 0
        wait_until(follower.leads, "the follower leads")
        assert follower.register("orders", record_schema("Order")) == first
        assert follower.register("payments", record_schema("Payment")) == first + 1


def test_instance_that_may_not_lead_never_does(broker: KasparProcess, settings: dict[str, str], tmp_path: Path) -> None:
    ineligible = {**settings, "leader.eligibility": "false", "kafkastore.timeout.ms": "500"}
    with Registry(tmp_path, broker.bootstrap, "ineligible", ineligible) as follower:
        response = follower.http.post("/subjects/orders/versions", json={"schema": record_schema("Order")})
        assert (response.status_code, response.json()["error_code"]) == (500, 50004)
        with Registry(tmp_path, broker.bootstrap, "eligible", settings) as leader:
            wait_until(leader.leads, "the eligible instance leads")
            assert follower.register("orders", record_schema("Order")) == leader.register(
                "orders", record_schema("Order")
            )
            assert not follower.leads()


def test_paused_leader_is_replaced_and_cannot_write_when_it_is_back(
    broker: KasparProcess, settings: dict[str, str], tmp_path: Path
) -> None:
    with registries(tmp_path, broker.bootstrap, 2, settings) as instances:
        old, new = leader_of(instances), follower_of(instances)
        old.register("orders", record_schema("Order"))
        old.pause()
        wait_until(new.leads, "the other instance leads")
        # Waits in the socket of the paused leader, which finds it before it finds that it was replaced.
        with httpx.Client(base_url=old.url, headers=NOT_FORWARDED, timeout=30.0, trust_env=False) as http:
            request = http.build_request("POST", "/subjects/stale/versions", json={"schema": record_schema("Stale")})
            new_id = new.register("payments", record_schema("Payment"))
            old.resume()
            response = http.send(request)
        assert response.status_code == 500
        wait_until(lambda: old.subjects() == ["orders", "payments"], "the old leader follows")
        assert new.subjects() == ["orders", "payments"]
        assert old.register("refunds", record_schema("Refund")) == new_id + 1


def test_two_instances_with_one_url_are_reported_and_do_not_write(
    broker: KasparProcess, settings: dict[str, str], tmp_path: Path
) -> None:
    twin = {**settings, "host.name": "registry.example.org", "host.port": "8081", "kafkastore.timeout.ms": "500"}
    with (
        Registry(tmp_path, broker.bootstrap, "one", twin) as one,
        Registry(tmp_path, broker.bootstrap, "two", twin) as two,
    ):
        wait_until(lambda: all("have the same URL" in each.log_text() for each in (one, two)), "both report it")
        assert not one.leads()
        assert not two.leads()
        two.kill()
        wait_until(one.leads, "the one that is left leads")
