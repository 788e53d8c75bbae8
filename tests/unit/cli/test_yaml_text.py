"""`--yaml`: what a reader of YAML gets is what was written. Any values: tests/property/test_yaml_text.py."""

from kaspar.cli.yaml_text import yaml_text


def test_document_is_readable() -> None:
    value = [
        {"name": "orders", "partitions": [{"partition": 0, "isr": [1, 2]}], "internal": False, "rack": None},
        {"name": "payments", "partitions": [], "configs": {}, "retention": "100"},
    ]
    assert yaml_text(value) == (
        "- name: orders\n"
        "  partitions:\n"
        "  - partition: 0\n"
        "    isr:\n"
        "    - 1\n"
        "    - 2\n"
        "  internal: false\n"
        "  rack: null\n"
        "- name: payments\n"
        "  partitions: []\n"
        "  configs: {}\n"
        '  retention: "100"\n'
    )


def test_strings_that_mean_something_else_are_quoted() -> None:
    for text in (
        "no",
        "Null",
        "1",
        "1e3",
        "",
        " a",
        "a: b",
        "a #b",
        "- a",
        "*",
        "User:alice",
        "2026-11-17",
        "~",
        "a\n",
    ):
        assert yaml_text(text) != f"{text}\n", text
    for text in ("orders", "__consumer_offsets", "cleanup.policy", "/var/lib/kaspar", "Print this"):
        assert yaml_text(text) == f"{text}\n"
