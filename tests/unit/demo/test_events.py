"""Events with mistakes, for dead letters. What events are: tests/unit/streams/examples/test_generators.py."""

import itertools
import json

from kaspar.demo.events import clicks, with_mistakes


def test_some_values_of_one_topic_cannot_be_parsed_and_everything_else_is_as_it_was() -> None:
    events = list(itertools.islice(clicks(1, 0, 100.0), 2000))
    mistaken = list(with_mistakes(events, "page-views", seed=1, share=0.1))
    changed = [(before, after) for before, after in zip(events, mistaken, strict=True) if before != after]
    views = sum(event[0] == "page-views" for event in events)
    assert 0.05 * views < len(changed) < 0.15 * views
    for before, after in changed:
        assert after[0] == "page-views"
        assert (after[1], after[3]) == (before[1], before[3])
        assert not _is_json(after[2])


def _is_json(text: str | None) -> bool:
    try:
        json.loads(text or "")
    except json.JSONDecodeError:
        return False
    return True
