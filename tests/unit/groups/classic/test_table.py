"""The states of a classic group: the table in the code, and the same table in the documentation."""

import re
from pathlib import Path

import pytest

from kaspar.config.broker.groups import GroupSettings
from kaspar.coordination import Now
from kaspar.groups.classic.membership import ClassicMembership
from kaspar.groups.classic.state import TRANSITIONS, ClassicState

PAGE = Path(__file__).parents[4] / "docs" / "groups.md"


def drawn_transitions() -> set[tuple[ClassicState, ClassicState]]:
    text = PAGE.read_text(encoding="utf-8")
    section = text[text.index("## Classic groups") : text.index("### What is in the log")]
    rows = re.findall(r"^\| (\w+) \| (\w+) \|", section, re.MULTILINE)
    return {(ClassicState(source), ClassicState(to)) for source, to in rows if source != "from"}


def test_the_page_has_the_transitions_of_the_table_and_no_others() -> None:
    assert drawn_transitions() == {(source, to) for source, targets in TRANSITIONS.items() for to in targets}


def test_the_drawing_names_every_state_but_the_last() -> None:
    text = PAGE.read_text(encoding="utf-8")
    for state in TRANSITIONS:
        if state is not ClassicState.DEAD:
            assert re.search(rf"\| +{state.value} +\|", text)


@pytest.mark.parametrize("source", ClassicState)
@pytest.mark.parametrize("to", ClassicState)
def test_a_group_goes_nowhere_else(source: ClassicState, to: ClassicState) -> None:
    group = ClassicMembership("readers", GroupSettings())
    group.state = source
    if to in TRANSITIONS[source]:
        group.transition_to(to, Now(1, 1, 1))
        assert group.state is to
    else:
        with pytest.raises(AssertionError):
            group.transition_to(to, Now(1, 1, 1))
