"""Programs in containers of a real engine, and Landlock's walls inside a container as engines make it by default."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from evalsuite.sandbox import Limits
from tests.container_engine import IMAGE, engine
from tests.unit.sandbox.test_sandboxes_elsewhere import FORGERIES, PROGRAMS, TABLES

if TYPE_CHECKING:
    from collections.abc import Iterator

Lab = Any
ROOT = Path(__file__).parents[3]
SMALL = Limits(memory=256 << 20, files=4 << 20, file=1 << 20, output=10_000, processes=16)
ATTACKS = {
    "the network": "socket.create_connection(('127.0.0.1', 9), 1)",
    "a name server": "socket.getaddrinfo('example.org', 80)",
    "a file of the image": "open('/etc/passwd', 'w')",
    "a new file beside its own": "open('/usr/mine', 'w')",
    "the kernel's settings": "open('/proc/sys/kernel/hostname', 'w')",
    "the memory of other processes": "open('/proc/1/mem', 'rb')",
    "the machine's memory": "open('/proc/kcore', 'rb').read(64)",
    "a device": "os.mknod('/tmp/memory', 0o020666, os.makedev(1, 1))",
    "another user": "os.setuid(0)",
    "another root": "os.chroot('/tmp')",
    "the clock": "time.clock_settime(0, 0)",
    "the machine's name": "socket.sethostname('mine')",
    "a higher limit": "resource.setrlimit(resource.RLIMIT_NOFILE, (1 << 20, 1 << 20))",
    "a file beyond the limit": "open('large', 'wb').write(bytes(2 << 20))",
    "the engine's socket": "socket.socket(socket.AF_UNIX).connect('/var/run/docker.sock')",
}
ALL_ATTACKS = (
    "import ctypes, os, resource, signal, socket, time\n"
    "signal.signal(signal.SIGXFSZ, signal.SIG_IGN)\n"
    f"for name, attack in {ATTACKS!r}.items():\n"
    "    try: exec(attack)\n"
    "    except (OSError, ValueError): continue\n"
    "    print('reached', name)\n"
    "libc = ctypes.CDLL(None)\n"
    "print(libc.unshare(0x10020000), libc.mount(b'none', b'/tmp', b'tmpfs', 0, None), libc.ptrace(16, 1, 0, 0))\n"
    "print(sorted(name for name in os.environ if 'KEY' in name or 'SECRET' in name), os.getuid())\n"
)
HOSTILE = {
    "import os\nwhile True: os.write(1, b'x' * 65536)": "stopped: more than 10,000 bytes were printed",
    "held = []\nwhile True: held.append(bytearray(10 << 20))": "the program's process was killed (SIGKILL)",
    "while True: pass": "stopped after 2 s",
}
BOMB = """
import os
children = 0
while True:
    try:
        if os.fork() == 0: os._exit(0)
    except OSError: break
    children += 1
print(children < 40)
"""


@pytest.fixture(scope="module")
def engine_command(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    with engine(tmp_path_factory.mktemp("engine")) as command:
        yield command


@pytest.fixture(scope="module")
def contained(lab: Lab, engine_command: str) -> Iterator[Lab]:
    other = type(lab)(tiers=(f"docker:{IMAGE}",), limits=SMALL)
    yield other
    other.close()


def test_programs_in_containers_come_to_the_same_as_here(lab: Lab, contained: Lab) -> None:
    codes = [PROGRAMS[name] for name in ("an exception", "a table by a path that is made up", "chance", "a file")]
    codes += FORGERIES.values()
    here = [lab.run(code, TABLES) for code in codes]
    there = contained.at_once(*codes, tables=TABLES)
    assert [(each.stdout, each.error, each.files) for each in there] == [
        (each.stdout, each.error, each.files) for each in here
    ]
    assert {each.tier for each in there} == {f"docker:{IMAGE}"}


def test_attacks_from_a_container_come_to_nothing(contained: Lab, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "not for programs")
    found = contained.run(ALL_ATTACKS)
    assert (found.error, found.stdout) == (None, "-1 -1 -1\n[] 65534\n")


def test_a_container_that_takes_too_much_is_ended_and_harms_nobody_else(contained: Lab) -> None:
    *ended, counted, honest = contained.at_once(*HOSTILE, BOMB, "print(6 * 7)", timeout=2)
    for code, error, found in zip(HOSTILE, HOSTILE.values(), ended, strict=True):
        assert (found.error or "").startswith(error), code
    assert (counted.stdout, honest.stdout) == ("True\n", "42\n")


def test_landlock_holds_programs_inside_a_container_with_the_engines_own_defaults(engine_command: str) -> None:
    folders = dict.fromkeys((ROOT, Path(sys.base_prefix).resolve(), Path(sys.prefix)))
    mounts = [word for path in folders for word in ("--volume", f"{path}:{path}:ro")]
    tests = "tests/unit/sandbox/test_landlock_walls.py"
    script = (
        "import subprocess, sys\n"
        "doctor = [sys.executable, '-m', 'evalsuite', 'doctor', '--model', 'function:json:dumps']\n"
        "subprocess.run(doctor, cwd='/tmp')\n"
        f"words = [sys.executable, '-m', 'pytest', '-q', '-rs', '-p', 'no:cacheprovider', {tests!r}]\n"
        f"sys.exit(subprocess.run(words, cwd={str(ROOT)!r}).returncode)"
    )
    limits = ("--ulimit", "nofile=1024", "--ulimit", "nproc=4096")
    place = ("--network", "none", *mounts, "--env", "HOME=/tmp", IMAGE)
    asked = subprocess.run(
        [engine_command, "run", "--rm", *limits, *place, sys.executable, "-B", "-c", script],
        capture_output=True,
        text=True,
        check=False,
    )
    assert "landlock: Python" in asked.stdout, asked.stdout + asked.stderr
    assert asked.returncode == 0, asked.stdout
    assert " passed" in asked.stdout
    assert "skipped" not in asked.stdout
