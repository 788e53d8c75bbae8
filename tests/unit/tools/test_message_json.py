"""The notation of JSON that Kafka's commands print."""

from kaspar.tools.message_json import json_line


def test_json_has_no_spaces_and_java_s_numbers() -> None:
    assert json_line({"a": [1, None, True, "ü\n"], "b": {"c": 1e7}}) == '{"a":[1,null,true,"ü\\n"],"b":{"c":1.0E7}}'
