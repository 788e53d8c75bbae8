from types import ModuleType

import pytest

from tests.unit.records.forms import FORMS, core_in_form


@pytest.fixture(params=FORMS)
def core(request: pytest.FixtureRequest) -> ModuleType:
    """The compiled core, once in each form."""
    return core_in_form(request.param)
