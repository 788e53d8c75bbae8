"""How commands change what runs."""

from pathlib import Path

import pytest

from kaspar.base.errors import KasparError
from kaspar.pipelines import definitions
from kaspar.pipelines.folder import Definition, Folder, Seen, Wanted
from kaspar.pipelines.statuses import PipelineStatus, State


@pytest.fixture
def folder(tmp_path: Path) -> Folder:
    made = Folder(tmp_path / "pipelines")
    made.make()
    return made


def program(tmp_path: Path, name: str = "app") -> Path:
    file = tmp_path / f"{name}.py"
    file.write_text("")
    return file


def test_program_has_the_name_of_its_file_or_a_given_one(folder: Folder, tmp_path: Path) -> None:
    app = program(tmp_path)
    assert definitions.add(folder, [app, program(tmp_path, "other")], ["-x"]) == ["app", "other"]
    assert definitions.add(folder, [app], [], "third") == ["third"]
    found = folder.definitions()
    assert [(each.program, each.arguments, each.wanted) for each in found.values()] == [
        (str(app), ("-x",), Wanted.RUNNING),
        (str(tmp_path / "other.py"), ("-x",), Wanted.RUNNING),
        (str(app), (), Wanted.RUNNING),
    ]


def test_nothing_is_added_if_one_is_refused(folder: Folder, tmp_path: Path) -> None:
    broken = tmp_path / "broken.py"
    broken.write_text("if")
    with pytest.raises(KasparError, match="is not valid Python"):
        definitions.add(folder, [program(tmp_path), broken], [])
    assert folder.names() == []


def test_names_are_refused_that_cannot_be_or_are_not_free(folder: Folder, tmp_path: Path) -> None:
    (tmp_path / "b").mkdir()
    app, other = program(tmp_path), program(tmp_path / "b")
    with pytest.raises(KasparError, match="two of the programs would have the name app"):
        definitions.add(folder, [app, other], [])
    with pytest.raises(KasparError, match="--name can be used with a single program only"):
        definitions.add(folder, [app, other], [], "both")
    with pytest.raises(KasparError, match="'a/b' is not a valid pipeline name"):
        definitions.add(folder, [app], [], "a/b")
    definitions.add(folder, [app], [])
    with pytest.raises(KasparError, match=f"app is already the name of {app}"):
        definitions.add(folder, [other], [])


def test_program_that_runs_as_it_is_is_not_started_again(folder: Folder, tmp_path: Path) -> None:
    app = program(tmp_path)
    definitions.add(folder, [app], ["x"])
    before = folder.definition("app")
    definitions.add(folder, [app], ["x"])
    assert folder.definition("app") == before


def test_other_arguments_a_stop_and_an_end_make_a_new_generation(folder: Folder, tmp_path: Path) -> None:
    app = program(tmp_path)
    definitions.add(folder, [app], ["x"])
    first = definitions.known(folder, "app")
    definitions.add(folder, [app], ["y"])
    second = definitions.known(folder, "app")
    assert second.arguments == ("y",)
    definitions.stop(folder, ["app"])
    assert definitions.known(folder, "app").generation == second.generation
    definitions.add(folder, [app], ["y"])
    third = definitions.known(folder, "app")
    assert third.wanted is Wanted.RUNNING
    folder.write_seen("app", Seen(third.generation, PipelineStatus("app", State.FINISHED, 1)))
    definitions.add(folder, [app], ["y"])
    fourth = definitions.known(folder, "app")
    assert first.generation < second.generation < third.generation < fourth.generation


def test_restart_starts_what_was_stopped(folder: Folder) -> None:
    far_ahead = 1 << 60
    folder.define("app", Definition("/app.py", (), far_ahead, Wanted.STOPPED))
    definitions.restart(folder, ["app"])
    assert folder.definition("app") == Definition("/app.py", (), far_ahead + 1)


@pytest.mark.parametrize("change", [definitions.stop, definitions.restart, definitions.remove])
def test_unknown_name_is_refused_and_nothing_changed(change: object, folder: Folder) -> None:
    folder.define("app", Definition("/app.py", (), 1))
    assert callable(change)
    for name in ("gone", "../app", ""):
        with pytest.raises(KasparError, match=r"there is no pipeline .* \(pipelines: app\)"):
            change(folder, [name, "app"])
    assert folder.definition("app") == Definition("/app.py", (), 1)


def test_left_to_run_is_what_was_neither_stopped_nor_finished(folder: Folder) -> None:
    folder.define("new", Definition("/app.py", (), 1))
    folder.define("stopped", Definition("/app.py", (), 1, Wanted.STOPPED))
    folder.define("finished", Definition("/app.py", (), 1))
    folder.write_seen("finished", Seen(1, PipelineStatus("finished", State.FINISHED, 1)))
    folder.define("again", Definition("/app.py", (), 2))
    folder.write_seen("again", Seen(1, PipelineStatus("again", State.FINISHED, 1)))
    assert definitions.left_to_run(folder) == ["again", "new"]
