"""The views of quotas, ACLs and users."""

from dataclasses import replace

import httpx
import pytest
from playwright.sync_api import Page, expect

from kaspar.console import acls, quotas, users
from kaspar.console.acls import AclQuery, AclView
from kaspar.console.quotas import EntityPart
from kaspar.console.users import Credential
from tests.browser.accessibility import check_accessibility
from tests.browser.administration.conftest import NewTopicNamed
from tests.browser.conftest import Problems
from tests.browser.console import Console
from tests.peers.observed import wait_until

DAVE = [EntityPart("user", "dave")]


def quotas_of_dave(console: Console) -> dict[str, float]:
    with console.admin() as admin:
        return {
            name: value
            for row in quotas.list_quotas(admin)
            if row.entity == tuple(DAVE)
            for name, value in row.values.items()
        }


def test_quotas_are_added_changed_and_removed(page: Page, secured: Console) -> None:
    secured.open(page, "#/quotas")
    page.get_by_role("button", name="Add quotas…").click()
    page.get_by_label("User").fill("dave")
    page.get_by_label("Produce").fill("1024")
    check_accessibility(page)
    page.get_by_role("button", name="Save").click()
    row = page.locator("tr[data-row]", has_text="dave")
    expect(row).to_contain_text("1.02 kB/s")
    assert quotas_of_dave(secured) == {"producer_byte_rate": 1024.0}
    row.get_by_role("button", name="Edit…").click()
    page.get_by_label("Produce").fill("")
    page.get_by_label("Request time").fill("50")
    page.get_by_role("button", name="Save").click()
    expect(row).to_contain_text("50 %")
    assert quotas_of_dave(secured) == {"request_percentage": 50.0}
    check_accessibility(page)
    row.get_by_role("button", name="Remove…").click()
    page.get_by_role("dialog").get_by_role("button", name="Remove", exact=True).click()
    expect(row).to_have_count(0)
    assert quotas_of_dave(secured) == {}


def test_of_two_people_who_change_a_quota_the_slower_one_is_told(
    page: Page, secured: Console, problems: Problems
) -> None:
    problems.expected.add(409)
    erin = [EntityPart("client-id", None)]
    with secured.admin() as admin:
        quotas.change(admin, erin, {"consumer_byte_rate": 1000.0}, {})
    listed = f"{secured.url}/api/quotas?search=default"
    wait_until(lambda: httpx.get(listed).json()["matching"] == 1, "the quota is listed")
    secured.open(page, "#/quotas?search=default")
    page.locator("tr[data-row]").get_by_role("button", name="Edit…").click()
    page.get_by_label("Fetch").fill("5")
    with secured.admin() as admin:
        quotas.change(admin, erin, {"consumer_byte_rate": 2000.0}, {"consumer_byte_rate": 1000.0})
    page.get_by_role("button", name="Save").click()
    expect(page.get_by_role("dialog").get_by_role("alert")).to_contain_text("changed by someone else")
    with secured.admin() as admin:
        quotas.change(admin, erin, {"consumer_byte_rate": None}, {"consumer_byte_rate": 2000.0})


def acls_of(console: Console, principal: str) -> set[tuple[str, str]]:
    with console.admin() as admin:
        found = acls.list_acls(admin, AclQuery(principal=principal)) or []
    return {(each.operation.name, each.resource_name) for each in found}


def test_acls_are_added_with_a_preview_filtered_and_removed(
    page: Page, secured: Console, new_topic: NewTopicNamed
) -> None:
    new_topic()
    secured.open(page, "#/acls")
    page.get_by_role("button", name="Add ACLs…").click()
    dialog = page.get_by_role("dialog", name="Add ACLs")
    dialog.get_by_label("Principal").fill("frank")
    dialog.get_by_label("Name").fill("orders-")
    dialog.get_by_label("Pattern").select_option("PREFIXED")
    expect(dialog.get_by_role("button", name="Preview")).to_be_disabled()
    dialog.get_by_label("read", exact=True).check()
    dialog.get_by_label("describe", exact=True).check()
    check_accessibility(page)
    dialog.get_by_role("button", name="Preview").click()
    expect(dialog).to_contain_text("allow User:frank to read topics with the prefix orders-")
    expect(dialog).to_contain_text("orders-0")
    assert acls_of(secured, "User:frank") == set()
    dialog.get_by_role("button", name="Add 2 ACLs").click()
    expect(page.get_by_text("2 ACLs added.")).to_be_visible()
    assert acls_of(secured, "User:frank") == {("READ", "orders-"), ("DESCRIBE", "orders-")}

    page.get_by_label("Principal").fill("User:frank")
    expect(page.locator("tr[data-row]")).to_have_count(2)
    check_accessibility(page)
    page.reload()
    expect(page.locator("tr[data-row]")).to_have_count(2)
    page.locator("tr[data-row]", has_text="describe").get_by_role("button", name="Remove…").click()
    question = page.get_by_role("dialog", name="Remove 1 ACL?")
    expect(question).to_contain_text("allow User:frank to describe topics with the prefix orders-")
    question.get_by_role("button", name="Remove").click()
    expect(page.locator("tr[data-row]")).to_have_count(1)
    assert acls_of(secured, "User:frank") == {("READ", "orders-")}


def test_all_acls_of_a_filter_are_removed_as_shown(page: Page, secured: Console) -> None:
    reads = AclView("TOPIC", "orders", "LITERAL", "User:grace", "*", "READ", "ALLOW")
    with secured.admin() as admin:
        acls.add(admin, [reads, replace(reads, operation="WRITE"), replace(reads, principal="User:heidi")])
    secured.open(page, "#/acls?principal=User:grace")
    page.get_by_role("button", name="Remove these 2…").click()
    question = page.get_by_role("dialog", name="Remove 2 ACLs?")
    expect(question.get_by_role("listitem")).to_have_count(2)
    with secured.admin() as admin:
        acls.remove(admin, [reads])  # somebody else is faster
    question.get_by_role("button", name="Remove").click()
    expect(page.get_by_text("1 ACL removed. 1 had already been removed.")).to_be_visible()
    assert acls_of(secured, "User:grace") == set()
    assert acls_of(secured, "User:heidi") == {("READ", "orders")}


def test_a_cluster_without_an_authorizer_says_so(page: Page, console: Console) -> None:
    console.open(page, "#/acls")
    expect(page.get_by_text("This cluster has no authorizer, so everyone may do everything.")).to_be_visible()
    expect(page.get_by_role("button", name="Add ACLs…")).to_have_count(0)


def test_users_are_created_given_passwords_and_removed(page: Page, secured: Console) -> None:
    secured.open(page, "#/users")
    page.get_by_role("button", name="Create user…").click()
    page.get_by_label("Name").fill("ivan")
    page.get_by_label("Password", exact=True).fill("secret")
    page.get_by_label("Password again").fill("other")
    expect(page.get_by_text("The two passwords differ.")).to_be_visible()
    page.get_by_label("Password again").fill("secret")
    check_accessibility(page)
    page.get_by_role("button", name="Create user", exact=True).click()
    row = page.locator("tr[data-row]", has_text="ivan")
    expect(row).to_contain_text("SCRAM-SHA-512")
    check_accessibility(page)
    row.get_by_role("button", name="New password…").click()
    page.get_by_label("Password", exact=True).fill("new")
    page.get_by_label("Password again").fill("new")
    page.get_by_label("Iterations").fill("8192")
    page.get_by_role("button", name="Change password").click()
    expect(row).to_contain_text("8,192")
    with secured.admin() as admin:
        (ivan,) = (each for each in users.list_users(admin) if each.name == "ivan")
    assert ivan.credentials == (Credential("SCRAM-SHA-512", 8192),)
    row.get_by_role("button", name="Remove…").click()
    remove = page.get_by_role("dialog").get_by_role("button", name="Remove user")
    expect(remove).to_be_disabled()
    page.get_by_role("dialog").get_by_role("textbox").fill("ivan")
    remove.click()
    expect(row).to_have_count(0)


@pytest.mark.long
def test_a_second_user_of_the_same_name_is_refused(page: Page, secured: Console, problems: Problems) -> None:
    problems.expected.add(409)
    secured.open(page, "#/users")
    page.get_by_role("button", name="Create user…").click()
    page.get_by_label("Name").fill("judy")
    for label in ("Password", "Password again"):
        page.get_by_label(label, exact=True).fill("secret")
    with secured.admin() as admin:
        users.create(admin, "judy", "hers", Credential("SCRAM-SHA-512", 4096))
    page.get_by_role("button", name="Create user", exact=True).click()
    expect(page.get_by_role("dialog").get_by_role("alert")).to_contain_text("The user judy already exists")
