"""Programs executed as `__main__` in threads of one process, and the modules beside them."""

import sys
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from kaspar.base.errors import KasparError
from kaspar.pipelines.modules import ModulesBeside, ModulesChanged
from kaspar.pipelines.programs import Loader, check_program

NEVER = threading.Event()


@pytest.fixture
def links(tmp_path: Path) -> Path:
    folder = tmp_path / "modules"
    folder.mkdir()
    return folder


@pytest.fixture
def loader(links: Path) -> Iterator[Loader]:
    modules, path = dict(sys.modules), list(sys.path)
    yield Loader(ModulesBeside(links), longest_turn_s=0.3)
    for name in sys.modules.keys() - modules.keys():
        del sys.modules[name]
    sys.path[:] = path


def write(file: Path, text: str) -> Path:
    file.parent.mkdir(exist_ok=True)
    file.write_text(text)
    return file


def seen_by(program: Path) -> str:
    return program.with_suffix(".out").read_text()


SHOW = """
import sys
from pathlib import Path
Path(__file__).with_suffix(".out").write_text(f"{__name__} {sys.argv[1:]} {sys.modules['__main__'].__file__}")
"""


def test_program_is_main_with_its_arguments(loader: Loader, tmp_path: Path) -> None:
    before = sys.argv, sys.modules["__main__"]
    program = write(tmp_path / "app.py", SHOW)
    loader.execute(program, ["--region", "eu"], NEVER)
    assert seen_by(program) == f"__main__ ['--region', 'eu'] {program}"
    assert (sys.argv, sys.modules["__main__"]) == before


def test_string_annotations_find_the_programs_own_names(loader: Loader, tmp_path: Path) -> None:
    text = "from __future__ import annotations\nfrom dataclasses import dataclass\nfrom typing import get_type_hints\n"
    text += "class A: pass\n@dataclass\nclass B:\n    a: A\nassert get_type_hints(B)['a'] is A\n"
    loader.execute(write(tmp_path / "app.py", text), [], NEVER)


def test_what_a_program_raises_reaches_the_caller_and_ends_its_turn(loader: Loader, tmp_path: Path) -> None:
    with pytest.raises(ZeroDivisionError):
        loader.execute(write(tmp_path / "app.py", "1/0"), [], NEVER)
    loader.execute(write(tmp_path / "other.py", SHOW), [], NEVER)


def test_program_that_is_no_python_is_refused_with_the_line(tmp_path: Path) -> None:
    with pytest.raises(KasparError, match=r"app.py is not valid Python, line 2: "):
        check_program(write(tmp_path / "app.py", "x = 1\nif"))
    with pytest.raises(KasparError, match=r"gone.py cannot be read: No such file"):
        check_program(tmp_path / "gone.py")
    with pytest.raises(KasparError, match="cannot be read"):
        check_program(tmp_path)


def test_next_program_waits_until_the_one_before_it_hands_over(loader: Loader, tmp_path: Path) -> None:
    """Here by its end; a hosted program ends its turn when it runs its pipeline."""
    slow = write(tmp_path / "slow.py", "import time; time.sleep(0.15)\n" + SHOW)
    thread = threading.Thread(target=loader.execute, args=(slow, ["slow"], NEVER))
    thread.start()
    while loader._owner is None:
        pass
    quick = write(tmp_path / "quick.py", SHOW)
    loader.execute(quick, ["quick"], NEVER)
    thread.join()
    assert seen_by(slow) == f"__main__ ['slow'] {slow}"
    assert seen_by(quick) == f"__main__ ['quick'] {quick}"


def test_program_that_never_hands_over_is_named_to_those_who_wait(loader: Loader, tmp_path: Path) -> None:
    ends = threading.Event()
    vars(threading)["_test_ends"] = ends
    stuck = write(tmp_path / "stuck.py", "import threading; threading._test_ends.wait()")
    thread = threading.Thread(target=loader.execute, args=(stuck, [], NEVER))
    thread.start()
    try:
        while loader._owner is None:
            pass
        with pytest.raises(KasparError, match=rf"the program {stuck} has not called run\(\) within"):
            loader.execute(write(tmp_path / "app.py", ""), [], NEVER)
        stop = threading.Event()
        stop.set()
        loader.execute(write(tmp_path / "app.py", "1/0"), [], stop)  # which has not run
    finally:
        ends.set()
        thread.join()
        del vars(threading)["_test_ends"]


def test_modules_beside_a_program_are_linked_for_workers(loader: Loader, links: Path, tmp_path: Path) -> None:
    write(tmp_path / "shop" / "rates_of_shop.py", "RATE = 2")
    write(tmp_path / "shop" / "prices_of_shop" / "__init__.py", "")
    write(tmp_path / "shop" / "unused_of_shop.py", "1/0")
    program = write(tmp_path / "shop" / "app.py", "import json, rates_of_shop, prices_of_shop\n")
    loader.execute(program, [], NEVER)
    linked = {link.name: link.resolve() for link in links.iterdir()}
    assert linked == {
        "rates_of_shop.py": tmp_path / "shop/rates_of_shop.py",
        "prices_of_shop": tmp_path / "shop/prices_of_shop",
    }
    ModulesBeside(links)  # of the next host
    assert list(links.iterdir()) == []


def test_two_modules_of_one_name_are_refused(loader: Loader, tmp_path: Path) -> None:
    for shop in ("one", "two"):
        write(tmp_path / shop / "common_rates.py", f"SHOP = '{shop}'")
        write(tmp_path / shop / "app.py", "import common_rates")
    loader.execute(tmp_path / "one/app.py", [], NEVER)
    with pytest.raises(KasparError, match=r"common_rates in \S+two has the same name as \S+one/common_rates.py"):
        loader.execute(tmp_path / "two/app.py", [], NEVER)
    loader.execute(tmp_path / "one/app.py", [], NEVER)


def test_changed_module_needs_another_process(loader: Loader, tmp_path: Path) -> None:
    module = write(tmp_path / "shop" / "changing_rates.py", "RATE = 2")
    program = write(tmp_path / "shop" / "app.py", "import changing_rates")
    loader.execute(program, [], NEVER)
    program.write_text("import changing_rates\nassert changing_rates.RATE == 2\n")  # the program itself may change
    loader.execute(program, [], NEVER)
    module.write_text("RATE = 300")
    with pytest.raises(ModulesChanged, match=r"changing_rates.py has changed"):
        loader.execute(program, [], NEVER)
