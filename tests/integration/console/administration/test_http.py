"""The same over HTTP: what the page sends and gets, what is in the audit log, and whose rights count."""

import json
from collections.abc import Callable
from urllib.parse import quote

import httpx

from kaspar.base.ids import TopicPartition
from kaspar.client.admin.group_offsets import alter_group_offsets
from kaspar.client.admin.session import Admin
from kaspar.pipelines.folder import Definition, Folder, Wanted
from tests.integration.console.administration.conftest import HER_GROUP, HERS, RECORDS, Consoles
from tests.peers.observed import wait_until

NewTopic = Callable[..., str]
ODD_GROUP = "billing/eu <b>&\u202e"
"""Names of groups may have anything in them."""


def commit(admin: Admin, group: str, topic: str, offset: int) -> None:
    assert set(alter_group_offsets(admin, group, {TopicPartition(topic, 0): offset}).values()) == {None}


def path(group: str) -> str:
    return quote(group, safe="")


def test_a_group_is_found_with_its_lag_and_reset(
    api: httpx.Client, admin: Admin, new_topic: NewTopic, consoles: Consoles
) -> None:
    topic = new_topic()
    commit(admin, ODD_GROUP, topic, 4)

    def row() -> dict[str, object]:
        found = api.get("/groups", params={"search": "BILLING/EU", "sort": "lag", "descending": "true"}).json()
        (only,) = found["rows"]
        return dict(only)

    wait_until(lambda: row()["total_lag"] == RECORDS - 4, "the monitor has seen the group")
    assert (row()["group_id"], row()["state"], row()["members"]) == (ODD_GROUP, "Empty", 0)
    group = api.get(f"/groups/{path(ODD_GROUP)}").json()
    assert [(each["topic"], each["committed_offset"], each["lag"]) for each in group["partitions"]] == [
        (topic, 4, RECORDS - 4)
    ]

    shown = api.post(f"/group-preview/{path(ODD_GROUP)}", json={"target": {"kind": "earliest"}}).json()
    moves = [each["move"] for each in shown["moves"]]
    assert moves == [{"topic": topic, "partition": 0, "old": 4, "new": 0}]
    assert (shown["read_again"], shown["refusal"]) == (4, None)
    assert api.post(f"/group-reset/{path(ODD_GROUP)}", json={"moves": moves}).status_code == 204
    again = api.post(f"/group-reset/{path(ODD_GROUP)}", json={"moves": moves})
    assert (again.status_code, again.json()["code"]) == (409, "Conflict")
    assert "have changed since the preview" in again.json()["message"]
    done = consoles.audited("reset offsets", f"group {ODD_GROUP}")
    assert (done["caller"], done["detail"]) == ("anonymous", f"{topic}-0: 4 -> 0")
    refused = consoles.audited("reset offsets", f"group {ODD_GROUP}", "refused")
    assert "have changed since the preview" in refused["reason"]
    assert api.delete(f"/group-offsets/{path(ODD_GROUP)}", params={"topic": topic}).json() == 1
    assert api.delete(f"/groups/{path(ODD_GROUP)}").status_code == 204
    assert api.get(f"/groups/{path(ODD_GROUP)}").status_code == 404


def test_a_wrong_request_gets_a_sentence(api: httpx.Client) -> None:
    for response in (
        api.get("/groups", params={"limit": "0"}),
        api.get("/groups", params={"sort": "colour"}),
        api.get("/transactions", params={"phase": "lunar"}),
        api.post("/group-preview/any", json={"target": {"kind": "yesterday"}}),
        api.post("/group-preview/any", content=b"\xff"),
        api.put("/quotas", json={"entity": [{"type": "user", "name": "bob"}], "values": {"speed": 1}}),
        api.post("/acls", json={"acls": []}),
        api.post("/users/bob", json={"password": ""}),
    ):
        assert response.status_code == 400, response.text
        assert response.json()["message"].endswith(".")
    assert api.delete("/group-members/nobody", params={"member": "x"}).status_code == 404


def test_a_change_needs_the_header_of_the_page(api: httpx.Client, admin: Admin, new_topic: NewTopic) -> None:
    commit(admin, "kept", new_topic(), 1)
    with httpx.Client(base_url=api.base_url) as other_site:
        assert other_site.delete("/groups/kept").status_code == 403
    assert api.get("/groups/kept").status_code == 200


def test_access_is_changed_and_passwords_stay_secret(api: httpx.Client, consoles: Consoles) -> None:
    entity = [{"type": "user", "name": "dave"}]
    assert api.put("/quotas", json={"entity": entity, "values": {"producer_byte_rate": 1024}}).status_code == 204
    wait_until(lambda: api.get("/quotas", params={"search": "dave"}).json()["matching"] == 1, "the quota is listed")
    stale = api.put("/quotas", json={"entity": entity, "values": {"producer_byte_rate": 5}, "seen": {}})
    assert stale.status_code == 409
    removal = {"entity": entity, "values": {"producer_byte_rate": None}, "seen": {"producer_byte_rate": 1024.0}}
    assert api.put("/quotas", json=removal).status_code == 204

    assert api.post("/users/dave", json={"password": "hunter2", "mechanism": "SCRAM-SHA-256"}).status_code == 204
    wait_until(lambda: api.get("/users", params={"search": "dav"}).json()["page"]["matching"] == 1, "dave is listed")
    view = api.get("/users").json()
    assert "without authentication" in view["remark"]
    assert api.put("/users/dave", json={"password": "hunter3", "mechanism": "SCRAM-SHA-256"}).status_code == 204
    assert api.delete("/users/dave").status_code == 204
    assert consoles.audited("remove user", "user dave")["caller"] == "anonymous"
    assert "hunter" not in consoles.audit_file.read_text()

    acl = {
        "resource_type": "TOPIC",
        "resource_name": "web/odd",
        "pattern_type": "LITERAL",
        "principal": "User:dave",
        "host": "*",
        "operation": "READ",
        "permission_type": "ALLOW",
    }
    (addition,) = api.post("/acls/preview", json={"acls": [acl]}).json()
    assert (addition["exists"], addition["matches"]) == (False, 0)
    assert api.post("/acls", json={"acls": [acl]}).status_code == 204
    found = api.get("/acls", params={"principal": "User:dave"}).json()
    assert (found["rows"], found["is_secured"]) == ([acl], True)
    assert api.post("/acls/remove", json={"acls": [acl]}).json() == {"removed": [acl], "missing": 0}
    assert consoles.audited("remove ACLs", "ACLs")["detail"] == "ALLOW User:dave from * READ TOPIC LITERAL web/odd"


def test_a_pipeline_is_stopped(api: httpx.Client, alices_api: httpx.Client, consoles: Consoles) -> None:
    folder = Folder(consoles.pipelines)
    folder.make()
    folder.define("copy", Definition("/programs/copy.py", (), 7))
    (row,) = api.get("/pipelines").json()["rows"]
    assert (row["name"], row["state"]) == ("copy", "interrupted")
    assert api.get("/pipelines/copy").json()["program"] == "/programs/copy.py"
    assert api.get("/pipelines/other").status_code == 404
    assert api.post("/pipelines/copy/restart").status_code == 409

    refused = alices_api.post("/pipelines/copy/stop")
    assert (refused.status_code, refused.json()["code"]) == (403, "CLUSTER_AUTHORIZATION_FAILED")
    assert "needs Alter permission on the cluster" in refused.json()["message"]
    assert alices_api.get("/pipelines").status_code == 403

    assert api.post("/pipelines/copy/stop").status_code == 204
    definition = folder.definition("copy")
    assert definition is not None
    assert definition.wanted is Wanted.STOPPED
    assert consoles.audited("stop pipeline", "pipeline copy")["caller"] == "anonymous"


def test_figures_of_the_cluster_need_a_right_on_it(api: httpx.Client, alices_api: httpx.Client) -> None:
    wait_until(lambda: api.get("/brokers").json()[0]["leaders"] is not None, "the monitor has seen the broker")
    wait_until(lambda: alices_api.get("/overview").status_code == 200, "the monitor has seen the cluster")
    (row,) = alices_api.get("/brokers").json()
    assert (row["leaders"], row["replicas"], row["rates"]) == (None, None, {})
    overview = alices_api.get("/overview").json()
    assert (overview["topics"], overview["partitions"]) == (1, 1), "those of her own topic"


def test_a_caller_sees_what_the_broker_allows(alices_api: httpx.Client, admin: Admin, new_topic: NewTopic) -> None:
    commit(admin, "not-hers", new_topic(), 1)
    commit(admin, HER_GROUP, HERS, 0)
    assert [row["group_id"] for row in alices_api.get("/groups").json()["rows"]] == [HER_GROUP]
    for response in (
        alices_api.get("/groups/not-hers"),
        alices_api.delete("/groups/not-hers"),
        alices_api.get("/quotas"),
        alices_api.get("/acls"),
        alices_api.get("/users"),
    ):
        assert response.status_code == 403, response.text
        assert response.json()["message"].startswith("The user alice is not permitted to do this.")
    with alices_api.stream("GET", "/events", params={"topic": "group:not-hers"}) as events:
        told = next(line for line in events.iter_lines() if line.startswith("data: "))
    assert "There is no group not-hers, or you may not see it." in told
    hidden = alices_api.get("/findings").json()
    assert all(
        each["resource"].split()[-1] in (HERS, HER_GROUP) for of in hidden["severities"] for each in of["findings"]
    )


def test_the_doctor_looks_again(api: httpx.Client) -> None:
    view = api.post("/findings").json()
    assert [each["severity"] for each in view["severities"]] == ["problem", "warning", "note"]
    assert view["total"] == sum(len(each["findings"]) for each in view["severities"]) > 0
    assert api.get("/findings").json()["total"] == view["total"]


def test_open_pages_are_told_of_a_group(api: httpx.Client, admin: Admin, new_topic: NewTopic) -> None:
    topic = new_topic()
    commit(admin, "watched", topic, 3)
    with api.stream("GET", "/events", params={"topic": ["group:watched"]}) as events:
        values = (json.loads(line.removeprefix("data: "))["value"] for line in events.iter_lines() if "data: " in line)
        seen = next(value for value in values if value["total_lag"] == RECORDS - 3)
    assert seen["points"][-1]["lag"] == RECORDS - 3


def test_the_name_of_a_group_is_no_line_of_the_stream(api: httpx.Client) -> None:
    name = "x\ndata: {}\n\nevent: cluster"
    with api.stream("GET", "/events", params={"topic": f"group:{name}"}) as events:
        lines = events.iter_lines()
        event = next(line for line in lines if line.startswith("event: "))
        assert event == f"event: {quote(f'group:{name}', safe='')}"
        assert json.loads(next(lines).removeprefix("data: "))["value"]["total_lag"] is None
