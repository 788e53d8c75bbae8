"""Kerberos for tests: a KDC on the loopback address, as an ordinary process with a database of its own, and the Python
package that Kaspar's extra `kerberos` brings.

    with Kdc(folder) as kdc:
        keytab = kdc.add("alice")              # or, for this process and its children: running_kdc(folder)
        environment = kdc.environment      # for programs that use MIT Kerberos; Java: kdc.jvm_flags
        kdc.fill_cache(folder / "cache", keytab, "alice")

Debian's packages are installed now where that is allowed, and the package is compiled once, into a folder of the cache.
"""

import importlib.util
import os
import socket
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from types import TracebackType
from typing import Final, Self

import pytest

from tests.peers.debian import not_found, require_packages
from tests.peers.downloads import cached, run_step
from tests.peers.missing import unless_missing
from tests.peers.wire import free_port

REALM: Final = "KASPAR.TEST"
MODULE: Final = "com.sun.security.auth.module.Krb5LoginModule"
FIRST_RUN_SECONDS: Final = 600
"""The first run on a machine installs and compiles."""
_REQUIREMENTS: Final = Path(__file__).with_name("kerberos-requirements.txt")
_PACKAGES: Final = ("krb5-kdc", "krb5-admin-server", "krb5-user", "libkrb5-dev")
_CYRUS_PACKAGE: Final = "libsasl2-modules-gssapi-mit"
_CYRUS_PLUGIN: Final = "libgssapiv2.so"
_PROGRAMS: Final = ("krb5kdc", "kadmin.local", "kdb5_util", "kinit", "krb5-config")
_PATH: Final = os.pathsep.join((os.environ.get("PATH", ""), "/usr/sbin", "/sbin"))
_START_SECONDS: Final = 60.0


def require_kerberos() -> Path:
    """The folder of the Python package `gssapi`; ToolMissingError if this machine has no Kerberos and gets none."""
    require_packages(_PACKAGES, lambda: not_found(_PROGRAMS))
    own = importlib.util.find_spec("gssapi")
    if own is not None and own.origin is not None:
        return Path(own.origin).parent.parent
    version = f"{sys.implementation.name}-{sys.version_info.major}.{sys.version_info.minor}"
    return cached(f"gssapi-{version}", [_REQUIREMENTS], _install_package)


def require_cyrus_plugin() -> None:
    """GSSAPI for programs that use the SASL library of Cyrus, as kcat."""
    require_packages([_CYRUS_PACKAGE], _missing_plugins)


def _missing_plugins() -> list[str]:
    return [] if any(Path("/usr").glob(f"lib*/**/sasl2/{_CYRUS_PLUGIN}")) else [_CYRUS_PLUGIN]


def _install_package(folder: Path, attempt: int) -> None:
    uv = Path(sys.executable).with_name("uv")
    command: list[str | Path] = [uv, "pip", "install", "--quiet", "--python", sys.executable, "--target", folder]
    # Not optimized: that takes the compiler half the time.
    run_step([*command, "--require-hashes", "-r", _REQUIREMENTS], folder=folder, environment={"CFLAGS": "-O0 -g0"})


def by_keytab(keytab: Path, principal: str, more: str = "") -> str:
    """For sasl.jaas.config."""
    return f'{MODULE} required useKeyTab=true storeKey=true keyTab="{keytab}" principal="{principal}@{REALM}" {more};'


def by_cache(cache: Path) -> str:
    return f'{MODULE} required useTicketCache=true ticketCache="{cache}";'


@contextmanager
def running_kdc(folder: Path) -> Iterator["Kdc"]:
    """Its settings and the package `gssapi` are there for this process, and for those that it starts. Skips the test
    where Kerberos is missing.
    """
    package = unless_missing(require_kerberos)
    with Kdc(folder) as kdc, pytest.MonkeyPatch.context() as patch:
        patch.syspath_prepend(package)
        for name, value in kdc.environment.items():
            patch.setenv(name, value)
        patch.setenv("PYTHONPATH", os.pathsep.join(filter(None, (str(package), os.environ.get("PYTHONPATH")))))
        yield kdc


class Kdc:
    """The KDC of one realm."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.port = free_port()
        self.config = folder / "krb5.conf"
        self._profile = folder / "kdc.conf"
        self._process: subprocess.Popen[bytes] | None = None

    @property
    def environment(self) -> Mapping[str, str]:
        """No ticket cache, keytab or replay cache of the machine is used."""
        return {
            "KRB5_CONFIG": str(self.config),
            "KRB5CCNAME": f"FILE:{self.folder / 'no-cache'}",
            "KRB5_KTNAME": f"FILE:{self.folder / 'no-keytab'}",
            "KRB5_CLIENT_KTNAME": f"FILE:{self.folder / 'no-keytab'}",
            "KRB5RCACHENAME": f"file2:{self.folder / 'replay-cache'}",
        }

    @property
    def jvm_flags(self) -> tuple[str, ...]:
        return (f"-Djava.security.krb5.conf={self.config}",)

    def write_config(self, path: Path, more: str = "") -> Path:
        """How clients and brokers find the KDC. `more` goes to [libdefaults]."""
        path.write_text(
            f"[libdefaults]\n default_realm = {REALM}\n dns_lookup_kdc = false\n dns_lookup_realm = false\n"
            f" dns_canonicalize_hostname = false\n rdns = false\n udp_preference_limit = 1\n{more}"
            f"[realms]\n {REALM} = {{\n  kdc = 127.0.0.1:{self.port}\n }}\n"
            f"[domain_realm]\n localhost = {REALM}\n"
        )
        return path

    def add(self, *principals: str) -> Path:
        """New principals with random keys; their keytab."""
        keytab = self.folder / f"{principals[0].replace('/', '-')}.keytab"
        self._administer(*(f"addprinc -randkey {each}" for each in principals))
        self.export(keytab, *principals)
        return keytab

    def export(self, keytab: Path, *principals: str) -> None:
        """Add their current keys to a keytab."""
        self._administer(f"ktadd -k {keytab} -norandkey {' '.join(principals)}")

    def limit_tickets(self, principal: str, lifetime: str) -> None:
        self._administer(f'modprinc -maxlife "{lifetime}" {principal}')

    def change_key(self, principal: str) -> None:
        """From now on the KDC uses another key, which no keytab has."""
        self._administer(f"cpw -randkey {principal}")

    def fill_cache(self, cache: Path, keytab: Path, principal: str, lifetime: str = "1h") -> None:
        command = ["kinit", "-c", str(cache), "-l", lifetime, "-k", "-t", str(keytab), principal]
        self._run(command)

    def _administer(self, *commands: str) -> None:
        done = self._run(["kadmin.local"], "\n".join(commands) + "\n")
        # It reports what fails, and ends well.
        problems = [line for line in done.stderr.splitlines() if " while " in line]
        assert not problems, problems

    def _run(self, command: list[str], text: str = "") -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            command,
            input=text,
            env=self._environment_of_programs(),
            capture_output=True,
            text=True,
            check=True,
            timeout=60,
        )

    def _environment_of_programs(self) -> dict[str, str]:
        return {**os.environ, **self.environment, "KRB5_KDC_PROFILE": str(self._profile), "PATH": _PATH}

    def start(self) -> None:
        self.folder.mkdir(parents=True, exist_ok=True)
        self.write_config(self.config)
        self._profile.write_text(
            f"[kdcdefaults]\n kdc_listen = 127.0.0.1:{self.port}\n kdc_tcp_listen = 127.0.0.1:{self.port}\n"
            f"[realms]\n {REALM} = {{\n  database_name = {self.folder / 'principal'}\n"
            f"  key_stash_file = {self.folder / 'stash'}\n  acl_file = {self.folder / 'acl'}\n }}\n"
            f"[logging]\n kdc = FILE:{self.folder / 'kdc.log'}\n admin_server = FILE:{self.folder / 'kadmin.log'}\n"
        )
        self._run(["kdb5_util", "create", "-s", "-r", REALM, "-P", "master"])
        with (self.folder / "kdc.out").open("wb") as output:
            self._process = subprocess.Popen(
                ["krb5kdc", "-n"],
                env=self._environment_of_programs(),
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=subprocess.STDOUT,
            )
        self._wait_until_it_listens(self._process)

    def _wait_until_it_listens(self, process: subprocess.Popen[bytes]) -> None:
        deadline = time.monotonic() + _START_SECONDS
        while True:
            try:
                socket.create_connection(("127.0.0.1", self.port), timeout=1).close()
                return
            except OSError:
                output = (self.folder / "kdc.out").read_text()
                assert process.poll() is None, f"the KDC ended: {output}"
                assert time.monotonic() < deadline, f"the KDC does not listen: {output}"
                time.sleep(0.01)

    def stop(self) -> None:
        if self._process is not None:
            self._process.kill()  # its database goes with the folder
            self._process.wait()

    def __enter__(self) -> Self:
        self.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self.stop()
