"""What Kafka's administrative commands have in common: options, exit codes, settings files, light imports."""

import argparse
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from kaspar import __version__
from kaspar.base.errors import KasparError
from kaspar.tools.command_line import FAILED, INTERRUPTED, CommandFailed, KafkaOptions, integer, open_admin, run


def _options() -> KafkaOptions:
    options = KafkaOptions("kafka-try", "Try.", example="kafka-try --count 5")
    options.add_argument("--count", type=integer)
    options.add_argument("--flag", action="store_true")
    return options


def test_options_are_parsed() -> None:
    parsed = _options().parse(["--count=-5", "--flag"])
    assert (parsed.count, parsed.flag) == (-5, True)
    assert _options().parse(["--count", "-1"]).count == -1
    assert _options().parse(["--flag"]).count is None


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        (["--zork"], "zork is not a recognized option"),
        (["--fl"], "fl is not a recognized option"),
        (["--count", "many"], "Cannot parse argument 'many' of option count"),
        (["--count", "2147483648"], "Cannot parse argument '2147483648' of option count"),
        (["--count"], "Option count requires an argument"),
        (["--count", "1", "--count", "1"], "Found multiple arguments for option count, but you asked for only one"),
    ],
)
def test_wrong_option_is_a_sentence_and_exit_code_1(
    words: list[str], sentence: str, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit) as ended:
        _options().parse(words)
    printed = capsys.readouterr()
    assert (ended.value.code, printed.out) == (FAILED, "")
    assert printed.err == f"{sentence}\nTry 'kafka-try --help' for the options.\n"


def test_words_that_are_no_options_are_ignored() -> None:
    parsed = _options().parse(["--flag", "word", "-", "--", "--count", "many"])
    assert (parsed.count, parsed.flag) == (None, True)


def test_an_option_with_the_value_0_is_given(capsys: pytest.CaptureFixture[str]) -> None:
    options = _options()
    options.require(options.parse(["--count", "0"]), "count")
    with pytest.raises(SystemExit):
        options.require(options.parse(["--flag"]), "count")
    assert 'Missing required argument "[count]"\n' in capsys.readouterr().err


def test_options_that_exclude_each_other(capsys: pytest.CaptureFixture[str]) -> None:
    options = _options()
    for words in (["--count", "1"], ["--flag"]):
        options.exclude(options.parse(words), "flag", ["count"])
    with pytest.raises(SystemExit):
        options.exclude(options.parse(["--count", "1", "--flag"]), "flag", ["count"])
    assert 'Option "[flag]" can\'t be used with option "[count]"\n' in capsys.readouterr().err


@pytest.mark.parametrize("words", [[], ["--help"], ["--flag", "--help"]])
def test_help_is_printed_to_standard_error(words: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as ended:
        _options().parse(words)
    printed = capsys.readouterr()
    assert (ended.value.code, printed.out) == (FAILED, "")
    assert "--count" in printed.err


def test_version_is_printed(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as ended:
        _options().parse(["--version"])
    assert (ended.value.code, capsys.readouterr().out) == (0, f"{__version__}\n")


def _raising(problem: BaseException) -> Callable[[], None]:
    def action() -> None:
        raise problem

    return action


def test_exit_code_says_how_a_command_ended() -> None:
    reported: list[KasparError] = []
    assert run(lambda: None, reported.append) == 0
    assert run(_raising(KeyboardInterrupt()), reported.append) == INTERRUPTED
    assert reported == []
    problem = CommandFailed("no")
    assert run(_raising(problem), reported.append) == FAILED
    assert run(_raising(ConnectionResetError("the peer closed the connection")), reported.append) == FAILED
    assert [str(each) for each in reported] == ["no", "No broker responds: the peer closed the connection"]


def test_output_that_nobody_reads_is_no_traceback() -> None:
    program = (
        "import sys\nfrom kaspar.tools.command_line import run\nsys.exit(run(lambda: print('x' * 100_000), print))\n"
    )
    with subprocess.Popen(
        [sys.executable, "-c", program], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    ) as process:
        assert process.stdout is not None
        assert process.stderr is not None
        process.stdout.close()
        assert process.stderr.read() == ""
    assert process.returncode == FAILED


@pytest.mark.parametrize("action", ["print('x')", "fail('x' * 100_000)"])
def test_output_to_a_full_disk_is_a_sentence(action: str) -> None:
    program = (
        "import sys\nfrom kaspar.tools.command_line import CommandFailed, run\n"
        "def fail(text): raise CommandFailed(text)\n"
        f"sys.exit(run(lambda: {action}, print))\n"
    )
    with open("/dev/full", "w", encoding="utf-8") as full:
        done = subprocess.run(
            [sys.executable, "-c", program], stdout=full, stderr=subprocess.PIPE, text=True, check=False
        )
    assert (done.returncode, done.stderr) == (FAILED, "The output cannot be written: No space left on device\n")


def test_without_standard_output_a_command_still_ends_well() -> None:
    program = "import sys\nfrom kaspar.tools.command_line import run\nsys.exit(run(lambda: print('x'), print))\n"
    done = subprocess.run(
        ["/bin/sh", "-c", 'exec "$0" -c "$1" >&-', sys.executable, program], capture_output=True, text=True, check=False
    )
    assert (done.returncode, done.stderr) == (0, "")


def test_settings_file_sets_the_times_and_the_client_id(tmp_path: Path) -> None:
    file = tmp_path / "client.properties"
    file.write_text("default.api.timeout.ms=1500\nrequest.timeout.ms=4000\nclient.id=me\nsecurity.protocol=plaintext\n")
    with open_admin("localhost:1", str(file), client_id="tool") as admin:
        assert admin.api_timeout_s == 1.5
        assert (admin.client.timeout_s, admin.client.client_id) == (1.5, "me")
    with open_admin("localhost:1", client_id="tool", api_timeout_s=7, request_timeout_s=3) as admin:
        assert (admin.api_timeout_s, admin.client.timeout_s, admin.client.client_id) == (7, 3, "tool")


@pytest.mark.parametrize(
    ("servers", "settings", "sentence"),
    [
        ("nonsense", "", "nonsense is not a list of host:port"),
        ("localhost:many", "", "localhost:many is not a list of host:port"),
        ("localhost:65536", "", "Invalid port in bootstrap.servers: 65536"),
        ("", "", "No resolvable bootstrap urls given in bootstrap.servers"),
        ("no-such-host.invalid:9092", "", "No resolvable bootstrap urls given in bootstrap.servers"),
        ("localhost:1", "request.timeout.ms=soon", "Invalid value soon for configuration request.timeout.ms"),
        ("localhost:1", "security.protocol=TLS", "Invalid value TLS for configuration security.protocol"),
        ("localhost:1", "security.protocol=SASL_SSL", "sasl.jaas.config is required for GSSAPI"),
        ("localhost:1", "security.protocol=SASL_SSL\nsasl.mechanism=PLAIN", "sasl.jaas.config is required"),
    ],
)
def test_wrong_settings_are_a_sentence(servers: str, settings: str, sentence: str, tmp_path: Path) -> None:
    file = tmp_path / "client.properties"
    file.write_text(settings)
    with pytest.raises(CommandFailed, match=sentence):
        open_admin(servers, str(file), client_id="tool")


@pytest.mark.parametrize(
    "module",
    [
        "kaspar.tools.leader_election",
        "kaspar.tools.reassign_partitions.command",
        "kaspar.tools.replica_verification.command",
    ],
)
def test_commands_start_without_heavy_imports(module: str) -> None:
    heavy = ("asyncio", "uvloop", "starlette", "kazoo", "kaspar.broker", "kaspar.controller", "kaspar.config", "re2")
    program = f"import sys, {module}; print([name for name in {heavy!r} if name in sys.modules])"
    assert subprocess.check_output([sys.executable, "-c", program], text=True) == "[]\n"


def test_integer_refuses_words() -> None:
    with pytest.raises(argparse.ArgumentTypeError):
        integer("1.5")
