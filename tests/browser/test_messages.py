"""The messages view: whatever records contain is shown harmlessly, and found, followed, written and replayed."""

import json
import re
from collections.abc import Callable, Sequence

import httpx
import pytest
from playwright.sync_api import Locator, Page, expect

from kaspar.client.admin.creation import NewTopic, create_topics
from kaspar.records.builder import build_batch
from kaspar.records.record import Header, Record
from tests.browser.accessibility import check_accessibility
from tests.browser.conftest import Problems
from tests.browser.console import Console, running_console
from tests.browser.phone import check_fits_a_phone

TIME_MS = 1_790_000_000_000
HOSTILE = '<img src=x onerror="window.hacked=1"><script>window.hacked=1</script>'
BIDI = "abc\u202egnp.exe"

Fill = Callable[..., str]


@pytest.fixture(scope="module")
def fill(console: Console) -> Fill:
    """Creates a topic with these records in one partition, and empty ones beside it."""

    def create(name: str, records: Sequence[Record] = (), partitions: int = 1) -> str:
        with console.admin() as admin:
            create_topics(admin, [NewTopic(name, partitions, 1)])
            for record in records:
                admin.client.produce(name, 0, bytes(build_batch([record])))
        return name

    return create


def append(console: Console, topic: str, *values: str) -> None:
    with console.admin() as admin:
        admin.client.produce(topic, 0, bytes(build_batch([Record(TIME_MS, None, value.encode()) for value in values])))


def values(console: Console, topic: str) -> list[tuple[bytes | None, bytes | None, tuple[Header, ...]]]:
    from kaspar.console.messages.reading.positions import Direction, End
    from kaspar.console.messages.reading.scanning import Budget, Query, read_page

    with console.admin() as admin:
        found = read_page(admin.client, Query(topic, End.OLDEST, Direction.FORWARD, Budget(1000)))
    return [(each.record.key, each.record.value, each.record.headers) for each in found.records]


def rows(page: Page) -> Locator:
    return page.locator(".messages-results tr[data-row]")


def expand(page: Page, offset: int) -> Locator:
    page.get_by_role("button", name=re.compile(f"Offset {offset} of")).click()
    details = page.locator(".messages-record")
    expect(details).to_be_visible()
    return details


def search(page: Page, text: str) -> None:
    page.get_by_label("Filter", exact=True).fill(text)
    page.get_by_role("button", name="Search").click()


@pytest.fixture(scope="module")
def numbers(fill: Fill) -> str:
    """0 to 119 as JSON, with keys; each a second after the one before."""
    records = [Record(TIME_MS + n * 1000, b"key-%d" % (n % 7), json.dumps({"n": n}).encode()) for n in range(120)]
    return fill("browser-numbers", records, 2)


def test_newest_records_come_first_and_pages_go_back_and_forth(page: Page, console: Console, numbers: str) -> None:
    console.open(page, f"#/messages/{numbers}")
    expect(rows(page)).to_have_count(50)
    expect(rows(page).first).to_contain_text('{"n": 119}')
    page.get_by_role("button", name="Older").click()
    expect(rows(page).first).to_contain_text('{"n": 69}')
    page.get_by_role("button", name="Older").click()
    expect(rows(page)).to_have_count(20)
    expect(rows(page).last).to_contain_text('{"n": 0}')
    expect(page.get_by_role("button", name="Older")).to_be_disabled()
    page.get_by_role("button", name="Newer").click()
    expect(rows(page).first).to_contain_text('{"n": 69}')
    check_accessibility(page)


def test_positions_are_in_the_address(page: Page, console: Console, numbers: str) -> None:
    console.open(page, f"#/messages/{numbers}")
    page.get_by_label("Position", exact=True).select_option("Oldest")
    expect(rows(page).first).to_contain_text('{"n": 0}')
    page.get_by_label("Partition", exact=True).select_option("0")
    page.get_by_label("Position", exact=True).select_option("From offset")
    page.get_by_label("Offset", exact=True).fill("100")
    page.keyboard.press("Enter")
    expect(rows(page)).to_have_count(20)
    expect(rows(page).first).to_contain_text('{"n": 100}')
    page.reload()
    expect(rows(page).first).to_contain_text('{"n": 100}')
    console.open(page, f"#/messages/{numbers}?at=time:{TIME_MS + 110_000}&order=asc")
    expect(rows(page).first).to_contain_text('{"n": 110}')
    console.open(page, f"#/messages/{numbers}?partitions=1")
    expect(page.get_by_text("There are no records here.")).to_be_visible()


def test_filter_finds_and_says_how_much_it_scanned(page: Page, console: Console, numbers: str) -> None:
    console.open(page, f"#/messages/{numbers}")
    page.keyboard.press("/")
    page.keyboard.type('value.n >= 100 and key == "key-3"')
    page.keyboard.press("Enter")
    expect(rows(page)).to_have_count(3)
    expect(page.get_by_role("status").filter(has_text="3 records found, 120 scanned")).to_be_visible()
    page.reload()
    expect(rows(page)).to_have_count(3)
    search(page, '"no such text"')
    expect(page.get_by_text("No record matches.")).to_be_visible()


def test_an_error_in_a_filter_points_at_its_column(
    page: Page, console: Console, numbers: str, problems: Problems
) -> None:
    problems.expected.add(400)
    console.open(page, f"#/messages/{numbers}")
    search(page, "value.n >= and")
    expect(page.get_by_role("alert").filter(has_text="A value is expected here, not `and`")).to_be_visible()
    expect(page.locator(".messages-mark")).to_have_text("value.n >= and\n           ^")


@pytest.fixture(scope="module")
def hostile(fill: Fill) -> str:
    headers: tuple[Header, ...] = ((HOSTILE, HOSTILE.encode()), (BIDI, b"\xff\xfe"))
    return fill(
        "browser-hostile",
        [
            Record(TIME_MS, HOSTILE.encode(), HOSTILE.encode(), headers),
            Record(TIME_MS, BIDI.encode(), json.dumps({"name": BIDI, "html": HOSTILE}).encode()),
            Record(TIME_MS, b"\xff\xfe\xfd\x00", b"mostly text \xff with a broken byte \x1b[31m"),
            Record(TIME_MS, None, b"x" * 1_000_000),
            Record(TIME_MS, b"tombstone", None),
            Record(TIME_MS, b"", b"\x00" * 300),
            Record(TIME_MS, b"deep", b"[" * 3000),
        ],
    )


def test_hostile_records_are_shown_harmlessly(page: Page, console: Console, hostile: str) -> None:
    console.open(page, f"#/messages/{hostile}?order=asc&at=oldest")
    expect(rows(page)).to_have_count(7)
    expect(rows(page).nth(0)).to_contain_text(HOSTILE)
    expect(rows(page).nth(1)).to_contain_text("U+202E")
    expect(rows(page).nth(2)).to_contain_text("U+001B")
    expect(rows(page).nth(2)).to_contain_text("ff fe fd 00")
    expect(rows(page).nth(4)).to_contain_text("null")
    for offset in range(7):
        details = expand(page, offset)
        expect(details.get_by_text("Value", exact=False).first).to_be_visible()
        page.get_by_role("button", name=re.compile(f"Offset {offset} of")).click()
        expect(page.locator(".messages-record")).to_have_count(0)
    assert page.evaluate("window.hacked") is None
    assert page.locator("main img, main script").count() == 0


def test_hostile_headers_are_texts(page: Page, console: Console, hostile: str) -> None:
    console.open(page, f"#/messages/{hostile}?order=asc&at=oldest")
    details = expand(page, 0)
    expect(details.locator(".messages-headers")).to_contain_text(HOSTILE)
    expect(details.locator(".messages-headers")).to_contain_text("U+202E")
    expect(details.locator(".messages-headers")).to_contain_text("ff fe")
    check_accessibility(page)
    assert page.evaluate("window.hacked") is None


def test_a_large_value_is_cut_shown_whole_on_demand_and_downloaded(page: Page, console: Console, hostile: str) -> None:
    console.open(page, f"#/messages/{hostile}?at=offset:3&order=asc")
    assert len(rows(page).first.inner_text()) < 2_000
    details = expand(page, 3)
    expect(details).to_contain_text("1 MB")
    details.get_by_role("button", name="Show all 1,000,000 characters").click()
    expect(details.get_by_label("Value", exact=True)).to_have_text("x" * 1_000_000)
    with page.expect_download() as download:
        details.get_by_role("link", name="Download value").click()
    assert download.value.suggested_filename == "browser-hostile-0-3-value.bin"
    assert download.value.path().read_bytes() == b"x" * 1_000_000


@pytest.mark.long
def test_a_search_finds_hostile_text(page: Page, console: Console, hostile: str) -> None:
    console.open(page, f"#/messages/{hostile}")
    search(page, '"<SCRIPT>"')
    expect(rows(page)).to_have_count(2)


def test_lines_are_used_by_keyboard(page: Page, console: Console, numbers: str) -> None:
    console.open(page, f"#/messages/{numbers}")
    rows(page).first.get_by_role("button").focus()
    page.keyboard.press("ArrowDown")
    page.keyboard.press("Enter")
    expect(page.locator(".messages-record")).to_contain_text("118")
    expect(rows(page).nth(1).get_by_role("button")).to_have_attribute("aria-expanded", "true")


def test_a_topic_is_followed_paused_and_resumed(page: Page, console: Console, fill: Fill) -> None:
    topic = fill("browser-tail", [Record(TIME_MS, None, b"before")])
    console.open(page, f"#/messages/{topic}")
    page.get_by_role("button", name="Follow live").click()
    expect(page.get_by_text("Records appear here as they are written.")).to_be_visible()
    append(console, topic, "first")
    expect(rows(page)).to_have_count(1)
    expect(rows(page).first).to_contain_text("first")
    append(console, topic, "second")
    expect(rows(page).first).to_contain_text("second")
    page.get_by_role("button", name="Pause").click()
    append(console, topic, "third")
    expect(page.get_by_text("Paused; 1 new record")).to_be_visible()
    expect(rows(page)).to_have_count(2)
    page.get_by_role("button", name="Resume").click()
    append(console, topic, *(f"burst {n}" for n in range(500)))
    expect(page.get_by_text(re.compile("showing .* of"))).to_be_visible()
    expect(rows(page).first).to_contain_text("burst 499")
    page.get_by_role("button", name="Stop following").click()
    expect(rows(page)).to_have_count(50)


@pytest.mark.long
def test_a_filter_decides_what_is_followed(page: Page, console: Console, fill: Fill) -> None:
    topic = fill("browser-filtered-tail")
    console.open(page, f"#/messages/{topic}?live=1&filter=%22yes%22")
    expect(page.get_by_text("Records appear here as they are written.")).to_be_visible()
    append(console, topic, "no", "yes 1", "no")
    expect(rows(page)).to_have_count(1)
    expect(rows(page).first).to_contain_text("yes 1")


def test_produce_a_record(page: Page, console: Console, fill: Fill, problems: Problems) -> None:
    problems.expected.add(400)
    topic = fill("browser-produce", partitions=2)
    console.open(page, f"#/messages/{topic}")
    page.get_by_role("button", name="Produce…").click()
    dialog = page.get_by_role("dialog")
    dialog.get_by_label("Key as", exact=True).select_option("text")
    dialog.get_by_label("Key", exact=True).fill("k1")
    dialog.get_by_label("Value", exact=True).fill('{"a": ')
    dialog.get_by_role("button", name="Add a header").click()
    dialog.get_by_label("Name", exact=True).fill("trace")
    dialog.get_by_label("Value of the header", exact=True).fill("7")
    check_accessibility(page)
    dialog.get_by_role("button", name="Produce").click()
    expect(dialog.get_by_role("alert")).to_contain_text("The value is not valid JSON")
    dialog.get_by_label("Value", exact=True).fill('{"a": 1}')
    dialog.get_by_role("button", name="Produce").click()
    expect(page.get_by_text(re.compile("Written to partition . of browser-produce at offset 0"))).to_be_visible()
    expect(rows(page)).to_have_count(1)
    assert values(console, topic) == [(b"k1", b'{"a": 1}', (("trace", b"7"),))]


def test_a_record_is_produced_by_a_schema_where_others_have_one(page: Page, console: Console, fill: Fill) -> None:
    schema = json.dumps({"type": "record", "name": "Order", "fields": [{"name": "id", "type": "long"}]})
    url = f"{console.broker.registry_url}/subjects/browser-avro-value/versions"
    framing = b"\0" + httpx.post(url, json={"schema": schema}).raise_for_status().json()["id"].to_bytes(4)
    topic = fill("browser-avro", [Record(TIME_MS, b"k", framing + b"\x02")])
    console.open(page, f"#/messages/{topic}")
    expect(rows(page)).to_contain_text('{"id": 1}')
    page.get_by_role("button", name="Produce…").click()
    dialog = page.get_by_role("dialog")
    expect(dialog.get_by_label("Key as", exact=True)).to_have_value("null")
    expect(dialog.get_by_label("Value as", exact=True)).to_have_value("schema")
    expect(dialog.get_by_label("Subject", exact=True)).to_have_value("browser-avro-value")
    dialog.get_by_label("Value", exact=True).fill('{"id": 2}')
    dialog.get_by_role("button", name="Produce").click()
    expect(rows(page)).to_have_count(2)
    assert values(console, topic)[1] == (None, framing + b"\x04", ())


@pytest.mark.long
def test_a_tombstone_is_produced(page: Page, console: Console, fill: Fill) -> None:
    topic = fill("browser-tombstone")
    console.open(page, f"#/messages/{topic}")
    page.get_by_role("button", name="Produce…").click()
    dialog = page.get_by_role("dialog")
    dialog.get_by_label("Key as", exact=True).select_option("text")
    dialog.get_by_label("Key", exact=True).fill("k1")
    dialog.get_by_label("Value as", exact=True).select_option("null")
    dialog.get_by_role("button", name="Produce").click()
    expect(rows(page)).to_have_count(1)
    assert values(console, topic) == [(b"k1", None, ())]


def test_replay_one_and_edit_one(page: Page, console: Console, fill: Fill) -> None:
    binary = bytes(range(256))
    topic = fill("browser-replay", [Record(TIME_MS, b"k", binary, (("h", binary),))])
    other = fill("browser-replayed")
    console.open(page, f"#/messages/{topic}")
    expand(page, 0).get_by_role("button", name="Replay…").click()
    dialog = page.get_by_role("dialog")
    dialog.get_by_label("To topic", exact=True).fill(other)
    dialog.get_by_role("button", name="Replay").click()
    expect(page.get_by_text("Written to partition 0 of browser-replayed at offset 0.")).to_be_visible()
    assert values(console, other) == [(b"k", binary, (("h", binary),))]
    page.locator(".messages-record").get_by_role("button", name="Edit and produce…").click()
    dialog.get_by_label("Key", exact=True).fill("k2")
    dialog.get_by_label("Topic", exact=True).fill(other)
    dialog.get_by_role("button", name="Produce").click()
    expect(page.get_by_text("Written to partition 0 of browser-replayed at offset 1.")).to_be_visible()
    assert values(console, other)[1] == (b"k2", binary, (("h", binary),))


def letters(origin: str, count: int) -> list[Record]:
    return [
        Record(
            TIME_MS,
            b"k%d" % n,
            b"{broken %d" % n,
            (
                ("own", b"1"),
                ("__connect.errors.topic", origin.encode()),
                ("__connect.errors.partition", b"0"),
                ("__connect.errors.offset", b"%d" % n),
                ("__connect.errors.exception.message", b"it is no JSON " + HOSTILE.encode()),
            ),
        )
        for n in range(count)
    ]


def test_dead_letters_show_their_origin_and_are_replayed(page: Page, console: Console, fill: Fill) -> None:
    origin = fill("browser-origin")
    dead = fill("browser-dead", letters(origin, 5))
    console.open(page, f"#/messages/{dead}")
    expect(rows(page).first).to_contain_text("it is no JSON")
    details = expand(page, 2)
    expect(details).to_contain_text("Dead letter from browser-origin, partition 0, offset 2")
    check_accessibility(page)
    details.get_by_role("button", name="Replay…").click()
    dialog = page.get_by_role("dialog")
    expect(dialog.get_by_label("To topic", exact=True)).to_have_value(origin)
    dialog.get_by_role("button", name="Replay").click()
    expect(page.get_by_text("Written to partition 0 of browser-origin at offset 0.")).to_be_visible()
    assert values(console, origin) == [(b"k2", b"{broken 2", (("own", b"1"),))]

    search(page, 'key in ["k3", "k4"]')
    expect(rows(page)).to_have_count(2)
    page.get_by_role("button", name="Replay those that match…").click()
    dialog.get_by_role("button", name="Replay 2 dead letters").click()
    expect(page.get_by_text("2 dead letters replayed.")).to_be_visible()
    assert [key for key, _, _ in values(console, origin)] == [b"k2", b"k3", b"k4"]
    assert page.evaluate("window.hacked") is None


def test_a_replay_that_has_failed_continues_where_it_stopped(page: Page, console: Console, fill: Fill) -> None:
    origin = fill("browser-continued")
    records = letters(origin, 3)
    records[1] = letters("browser-continued-later", 2)[1]
    dead = fill("browser-continued-dead", records)
    console.open(page, f"#/messages/{dead}")
    page.get_by_role("button", name="Replay those that match…").click()
    dialog = page.get_by_role("dialog")
    dialog.get_by_role("button", name="Replay 3 dead letters").click()
    expect(dialog.get_by_role("alert")).to_contain_text("1 dead letter replayed, then: There is no topic")
    later = fill("browser-continued-later")
    dialog.get_by_role("button", name="Continue").click()
    expect(page.get_by_text("3 dead letters replayed.")).to_be_visible()
    assert [key for key, _, _ in values(console, origin)] == [b"k0", b"k2"]
    assert [key for key, _, _ in values(console, later)] == [b"k1"]


def test_a_replay_whose_response_is_lost_says_that_records_may_be_written(
    page: Page, console: Console, problems: Problems, fill: Fill
) -> None:
    problems.loses_connection = True
    origin = fill("browser-lost")
    dead = fill("browser-lost-dead", letters(origin, 2))
    console.open(page, f"#/messages/{dead}")
    page.get_by_role("button", name="Replay those that match…").click()
    dialog = page.get_by_role("dialog")
    button = dialog.get_by_role("button", name="Replay 2 dead letters")
    expect(button).to_be_enabled()
    page.route("**/dead-letters", lambda route: route.abort())
    button.click()
    expect(dialog.get_by_role("alert")).to_contain_text("whether those that follow were written is unknown")


def test_a_topic_that_is_gone_says_so(page: Page, console: Console, problems: Problems) -> None:
    problems.expected.add(404)
    console.open(page, "#/messages/nowhere")
    expect(page.get_by_role("alert").filter(has_text="There is no topic nowhere.")).to_be_visible()


def test_a_topic_is_chosen(page: Page, console: Console, numbers: str) -> None:
    console.open(page, "#/messages")
    page.get_by_label("Find a topic").fill("browser-num")
    page.get_by_role("link", name=numbers).click()
    expect(rows(page)).to_have_count(50)


def test_the_view_fits_a_phone(page: Page, console: Console, numbers: str) -> None:
    check_fits_a_phone(page, console, "#/messages", f"#/messages/{numbers}")
    expect(rows(page)).to_have_count(50)


@pytest.mark.long
def test_a_broker_dies_and_returns_while_its_topic_is_followed(page: Page, problems: Problems) -> None:
    problems.expected |= {502, 503}
    problems.loses_connection = True
    with running_console(settings={"client.default.api.timeout.ms": "1000"}) as console:
        with console.admin() as admin:
            create_topics(admin, [NewTopic("followed", 1, 1)])
        append(console, "followed", "before")
        console.open(page, "#/messages/followed")
        expect(rows(page)).to_have_count(1)
        page.get_by_role("button", name="Follow live").click()
        expect(page.get_by_text("Records appear here as they are written.")).to_be_visible()
        console.broker.kill()
        alert = page.locator(".notice.bad")
        expect(alert).to_be_visible(timeout=20_000)
        console.broker.start()
        expect(alert).to_have_count(0, timeout=30_000)
        append(console, "followed", "after")
        expect(rows(page).first).to_contain_text("after", timeout=20_000)
        page.get_by_role("button", name="Stop following").click()
        expect(rows(page)).to_have_count(2)
