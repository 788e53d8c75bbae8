"""The schemas view: versions, differences, a check before saving, settings, deletion."""

import json
import re
from collections.abc import Callable, Mapping

import httpx
import pytest
from playwright.sync_api import Page, expect

from tests.browser.accessibility import check_accessibility
from tests.browser.conftest import Problems
from tests.browser.console import Console, running_console
from tests.browser.phone import check_fits_a_phone

Register = Callable[..., None]


def record(*fields: Mapping[str, object]) -> str:
    return json.dumps({"type": "record", "name": "Order", "fields": list(fields)})


ID = {"name": "id", "type": "long"}
NOTE = {"name": "note", "type": "string"}
AMOUNT = {"name": "amount", "type": "long"}
OPTIONAL_NOTE = {"name": "note", "type": "string", "default": ""}


@pytest.fixture(scope="module")
def register(console: Console) -> Register:
    def post(subject: str, schema: str, **more: object) -> None:
        url = f"{console.broker.registry_url}/subjects/{subject.replace('/', '%2F')}/versions"
        httpx.post(url, json={"schema": schema, **more}).raise_for_status()

    return post


def test_subjects_are_listed_and_found(page: Page, console: Console, register: Register) -> None:
    register("list-a-value", record(ID))
    register("list-b/odd <i>name</i>", '{"type": "object"}', schemaType="JSON")
    console.open(page, "#/schemas")
    page.get_by_label("Find a subject").fill("list-")
    expect(page.get_by_role("row")).to_have_count(3)
    expect(page.get_by_role("row", name=re.compile("odd"))).to_contain_text("JSON")
    check_accessibility(page)
    page.get_by_role("link", name="list-b/odd <i>name</i>").click()
    expect(page.get_by_role("heading", level=1)).to_have_text("list-b/odd <i>name</i>")
    expect(page.get_by_label("Schema", exact=True)).to_contain_text('"type": "object"')


def test_versions_are_compared(page: Page, console: Console, register: Register) -> None:
    register("compared-value", record(ID))
    register("compared-value", record(ID, OPTIONAL_NOTE))
    console.open(page, "#/schemas/compared-value")
    expect(page.get_by_label("Schema", exact=True)).to_contain_text('"note"')
    page.get_by_label("Compare with").select_option("1")
    difference = page.get_by_label("Difference between versions 1 and 2")
    expect(difference.locator(".added").filter(has_text='"name": "note"')).to_be_visible()
    check_accessibility(page)
    page.reload()
    expect(difference).to_be_visible()


def test_a_version_is_checked_before_it_is_saved(page: Page, console: Console, register: Register) -> None:
    register("checked-value", record(ID))
    console.open(page, "#/schemas/checked-value")
    page.get_by_role("button", name="New version…").click()
    dialog = page.get_by_role("dialog")
    dialog.get_by_label("Schema", exact=True).fill(record(ID, NOTE))
    dialog.get_by_role("button", name="Check compatibility").click()
    expect(dialog.get_by_text("The schema is not compatible.")).to_be_visible()
    expect(dialog).to_contain_text("The field 'note' at path '/fields/1' in the new schema has no default value")
    check_accessibility(page)
    dialog.get_by_label("Schema", exact=True).fill("{")
    dialog.get_by_role("button", name="Check compatibility").click()
    expect(dialog.get_by_text(re.compile("Invalid schema"))).to_be_visible()
    dialog.get_by_label("Schema", exact=True).fill(record(ID, OPTIONAL_NOTE))
    dialog.get_by_role("button", name="Check compatibility").click()
    expect(dialog.get_by_text("The schema is compatible.")).to_be_visible()
    dialog.get_by_role("button", name="Register").click()
    expect(page.get_by_text(re.compile("Registered as version 2"))).to_be_visible()
    expect(page.get_by_label("Version", exact=True)).to_have_value("2")


@pytest.mark.long
def test_what_the_registry_refuses_is_said(
    page: Page, console: Console, register: Register, problems: Problems
) -> None:
    problems.expected.add(409)
    register("refused-value", record(ID))
    console.open(page, "#/schemas/refused-value")
    page.get_by_role("button", name="New version…").click()
    dialog = page.get_by_role("dialog")
    dialog.get_by_label("Schema", exact=True).fill(record(ID, NOTE))
    dialog.get_by_role("button", name="Register").click()
    expect(dialog.get_by_role("alert")).to_contain_text("incompatible")


def test_a_new_subject_with_a_reference(page: Page, console: Console, register: Register) -> None:
    register("referenced", '{"type": "record", "name": "Money", "fields": [{"name": "cents", "type": "long"}]}')
    console.open(page, "#/schemas")
    page.get_by_role("button", name="New schema…").click()
    dialog = page.get_by_role("dialog")
    dialog.get_by_label("Subject", exact=True).fill("referring-value")
    dialog.get_by_label("Schema", exact=True).fill(record(ID, {"name": "price", "type": "Money"}))
    dialog.get_by_role("button", name="Add a reference").click()
    reference = dialog.get_by_role("group", name="Reference 1")
    reference.get_by_label("Name").fill("Money")
    reference.get_by_label("Subject").fill("referenced")
    dialog.get_by_role("button", name="Register").click()
    expect(page.get_by_text(re.compile("Registered as version 1"))).to_be_visible()
    console.open(page, "#/schemas/referenced")
    page.get_by_role("link", name="referring-value v1").click()
    expect(page.get_by_role("link", name="referenced v1")).to_be_visible()


def test_settings_of_a_subject(page: Page, console: Console, register: Register) -> None:
    register("settings-value", record(ID))
    console.open(page, "#/schemas/settings-value")
    page.get_by_label("Compatibility", exact=True).select_option("NONE")
    page.get_by_role("dialog").get_by_role("button", name="Cancel").click()
    expect(page.get_by_label("Compatibility", exact=True)).to_have_value("")
    page.get_by_label("Compatibility", exact=True).select_option("NONE")
    page.get_by_role("dialog").get_by_role("button", name="Change").click()
    expect(page.get_by_text("The compatibility is now NONE.")).to_be_visible()
    level = httpx.get(f"{console.broker.registry_url}/config/settings-value").json()["compatibilityLevel"]
    assert level == "NONE"
    page.get_by_label("Compatibility", exact=True).select_option("")
    page.get_by_role("dialog").get_by_role("button", name="Change").click()
    expect(page.get_by_text("The compatibility is now that of the registry.")).to_be_visible()
    assert httpx.get(f"{console.broker.registry_url}/config/settings-value").status_code == 404


def test_the_mode_of_a_subject(page: Page, console: Console, register: Register) -> None:
    register("mode-value", record(ID))
    console.open(page, "#/schemas/mode-value")
    mode = page.get_by_label("Mode", exact=True)
    mode.select_option("READONLY")
    page.get_by_role("dialog").get_by_role("button", name="Change").click()
    expect(page.get_by_text("The mode is now READONLY.")).to_be_visible()
    expect(mode).to_have_value("READONLY")
    assert httpx.get(f"{console.broker.registry_url}/mode/mode-value").json() == {"mode": "READONLY"}


def test_the_defaults_of_the_registry(page: Page, console: Console) -> None:
    def of_registry() -> tuple[str, str]:
        level, mode = (httpx.get(f"{console.broker.registry_url}/{each}").json() for each in ("config", "mode"))
        return level["compatibilityLevel"], mode["mode"]

    was = of_registry()
    console.open(page, "#/schemas")
    for label, value, before in (("Default compatibility", "FULL", was[0]), ("Mode", "READONLY", was[1])):
        field = page.get_by_label(label, exact=True)
        field.select_option(value)
        page.get_by_role("dialog").get_by_role("button", name="Cancel").click()
        expect(field).to_have_value(before)
        field.select_option(value)
        page.get_by_role("dialog").get_by_role("button", name="Change").click()
        expect(page.get_by_text(f"The {label.lower()} is now {value}.")).to_be_visible()
        expect(field).to_have_value(value)
    assert of_registry() == ("FULL", "READONLY")
    for label, before in (("Mode", was[1]), ("Default compatibility", was[0])):  # a read-only registry refuses
        page.get_by_label(label, exact=True).select_option(before)
        page.get_by_role("dialog").get_by_role("button", name="Change").click()
        expect(page.get_by_text(f"The {label.lower()} is now {before}.")).to_be_visible()
    assert of_registry() == was


def test_deletion_asks_and_has_two_steps(page: Page, console: Console, register: Register) -> None:
    register("deleted-value", record(ID))
    console.open(page, "#/schemas/deleted-value")
    page.get_by_role("button", name="Delete version…").click()
    dialog = page.get_by_role("dialog")
    dialog.get_by_role("button", name="Cancel").click()
    assert httpx.get(f"{console.broker.registry_url}/subjects/deleted-value/versions").json() == [1]
    page.get_by_role("button", name="Delete version…").click()
    dialog.get_by_role("button", name="Delete").click()
    expect(page.get_by_text("Version 1 was deleted.")).to_be_visible()
    page.get_by_role("button", name="Remove subject permanently…").click()
    expect(dialog.get_by_role("button", name="Remove")).to_be_disabled()
    dialog.get_by_label("Type deleted-value to confirm").fill("deleted-value")
    dialog.get_by_role("button", name="Remove").click()
    expect(page.get_by_role("heading", level=1)).to_have_text("Schemas")
    assert httpx.get(f"{console.broker.registry_url}/subjects?deleted=true").json().count("deleted-value") == 0


def test_records_are_written_and_read_by_schema(page: Page, console: Console, register: Register) -> None:
    from kaspar.client.admin.creation import NewTopic, create_topics

    register("avro-value", record(ID, AMOUNT))  # no other subject has this schema: its id names this one
    with console.admin() as admin:
        create_topics(admin, [NewTopic("avro", 1, 1)])
    console.open(page, "#/messages/avro")
    page.get_by_role("button", name="Produce…").click()
    dialog = page.get_by_role("dialog")
    dialog.get_by_label("Value as", exact=True).select_option("schema")
    dialog.get_by_label("Value", exact=True).fill('{"id": 42, "amount": 7}')
    dialog.get_by_role("button", name="Produce").click()
    line = page.locator(".messages-results tr[data-row]")
    expect(line).to_contain_text('{"id": 42, "amount": 7}')
    line.get_by_role("button").click()
    expect(page.locator(".messages-record")).to_contain_text("(avro-value v1)")


def test_views_fit_a_phone(page: Page, console: Console, register: Register) -> None:
    register("phone-value", record(ID))
    register("phone-value", record(ID, OPTIONAL_NOTE))
    check_fits_a_phone(page, console, "#/schemas", "#/schemas/phone-value", "#/schemas/phone-value?against=1")


@pytest.mark.long
def test_without_a_registry_the_view_says_so(page: Page, problems: Problems) -> None:
    problems.expected.add(501)
    problems.loses_connection = True  # the console ends before the page does
    with running_console() as console:
        console.open(page, "#/schemas")
        expect(page.get_by_role("alert").filter(has_text="No schema registry is configured")).to_be_visible()
        expect(page.get_by_role("link", name="Schemas")).to_have_count(0)
