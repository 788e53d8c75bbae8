"""Which Java is found, and what is said where there is none."""

from pathlib import Path

import pytest

import kaspar.spark
from kaspar.spark.running import java
from kaspar.spark.running.java import JavaMissing, find_java, main, version_in


def _java(home: Path, version: str) -> Path:
    """A program that says of itself what `java -version` would."""
    program = home / "bin" / "java"
    program.parent.mkdir(parents=True)
    program.write_text(f"#!/bin/sh\necho 'openjdk version \"{version}\" 2025-04-15' >&2\n")
    program.chmod(0o755)
    return home


@pytest.mark.parametrize(
    ("text", "version"),
    [
        ('openjdk version "17.0.15" 2025-04-15', 17),
        ('openjdk version "21" 2023-09-19', 21),
        ('java version "1.8.0_402"', 8),
        ("nothing of the kind", None),
    ],
)
def test_version(text: str, version: int | None) -> None:
    assert version_in(text) == version


def test_java_home_is_respected(tmp_path: Path) -> None:
    chosen, other = _java(tmp_path / "chosen", "21.0.1"), _java(tmp_path / "jvm" / "other", "17.0.1")
    found = find_java({"JAVA_HOME": str(chosen), "PATH": str(other / "bin")}, tmp_path / "jvm")
    assert (found.home, found.version) == (chosen, 21)


def test_java_home_without_java_is_not_passed_over(tmp_path: Path) -> None:
    """Spark's scripts would fail on it."""
    usable = _java(tmp_path / "usable", "17.0.1")
    with pytest.raises(JavaMissing, match=r"JAVA_HOME is .*/gone, but .*/gone/bin/java does not run: install Java 17"):
        find_java({"JAVA_HOME": str(tmp_path / "gone"), "PATH": str(usable / "bin")}, tmp_path)


def test_old_java_home_is_named(tmp_path: Path) -> None:
    old = _java(tmp_path / "old", "11.0.2")
    with pytest.raises(JavaMissing, match="which is Java 11, too old for Spark"):
        find_java({"JAVA_HOME": str(old), "PATH": ""}, tmp_path)


def test_java_of_the_path_comes_before_others(tmp_path: Path) -> None:
    on_path, other = _java(tmp_path / "on_path", "17.0.1"), _java(tmp_path / "jvm" / "a", "21.0.1")
    found = find_java({"PATH": str(on_path / "bin")}, other.parent)
    assert (found.home, found.version) == (on_path, 17)


def test_old_java_of_the_path_is_passed_over(tmp_path: Path) -> None:
    on_path, other = _java(tmp_path / "on_path", "1.8.0_402"), _java(tmp_path / "jvm" / "a", "21.0.1")
    assert find_java({"PATH": str(on_path / "bin")}, other.parent).home == other


def test_too_old_java_is_reported(tmp_path: Path) -> None:
    on_path = _java(tmp_path / "on_path", "11.0.2")
    with pytest.raises(JavaMissing, match="Spark cannot run on Java 11, which is too old: install Java 17 or newer"):
        find_java({"PATH": str(on_path / "bin")}, tmp_path / "jvm")


def test_missing_java_is_reported_with_how_to_install_it(tmp_path: Path) -> None:
    with pytest.raises(JavaMissing, match=r"none was found: .*apt-get install openjdk-17-jre-headless"):
        find_java({"PATH": ""}, tmp_path)


def test_command_does_not_install_over_a_wrong_java_home(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("JAVA_HOME", str(tmp_path))
    monkeypatch.setattr(java, "install", lambda: pytest.fail("it must not install"))
    assert main(["--install"]) == 1
    assert capsys.readouterr().err.startswith(f"kaspar: JAVA_HOME is {tmp_path}")


def test_install_by_a_usual_user_says_how(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("JAVA_HOME", raising=False)
    monkeypatch.setenv("PATH", "")
    monkeypatch.setattr("os.geteuid", lambda: 1000)
    monkeypatch.setattr(java.find_java, "__defaults__", (None, tmp_path))
    with pytest.raises(JavaMissing, match="install Java 17 or newer"):
        java.install()


def test_install_takes_the_package_that_the_release_has(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Debian 12 has Java 17 and Debian 13 has Java 21; and on a fresh machine the lists of packages come first."""
    calls, homes = tmp_path / "calls", tmp_path / "jvm"
    manager = tmp_path / "bin" / "apt-get"
    manager.parent.mkdir()
    manager.write_text(
        f"""#!/bin/sh
echo "$@" >> {calls}
case "$*" in
    *update*) touch {tmp_path}/lists ;;
    *openjdk-21*) test -e {tmp_path}/lists && mv {_java(tmp_path / "packaged", "21.0.1")} {homes}/java-21 ;;
    *) exit 100 ;;
esac
"""
    )
    manager.chmod(0o755)
    homes.mkdir()
    monkeypatch.delenv("JAVA_HOME", raising=False)
    monkeypatch.setenv("PATH", f"{manager.parent}:/usr/bin:/bin")
    monkeypatch.setattr("os.geteuid", lambda: 0)
    monkeypatch.setattr(java, "find_java", lambda: find_java({"PATH": ""}, homes))
    assert java.install().version == 21
    assert [call.split()[-1] for call in calls.read_text().splitlines()] == [
        "openjdk-17-jre-headless",
        "openjdk-21-jre-headless",
        "update",
        "openjdk-17-jre-headless",
        "openjdk-21-jre-headless",
    ]


def test_session_without_java_says_how_to_get_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("JAVA_HOME", str(tmp_path))
    with pytest.raises(JavaMissing, match="install Java 17 or newer"):
        kaspar.spark.session()
