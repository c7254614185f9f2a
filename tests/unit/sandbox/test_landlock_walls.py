"""What holds programs on machines without user namespaces: attacks, each of which must come to nothing."""

from __future__ import annotations

import errno
import os
import socket
import subprocess
import sys
import time
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from evalsuite.sandbox import Sandbox
from evalsuite.sandbox.inside import isolation
from tests.unit.sandbox.conftest import SMALL

if TYPE_CHECKING:
    from tests.unit.sandbox.conftest import Lab

REFUSED = ("PermissionError", "BlockingIOError")


def last_line(error: str | None) -> str:
    return (error or "").split("\n")[-1]


def test_the_tier_stands_on_each_execution(landlocked: Lab) -> None:
    assert landlocked.run("print(1)").tier == "landlock"


def test_more_paths_may_be_shown_than_a_program_may_have_files_open(landlocked: Lab) -> None:
    sandbox = Sandbox(limits=replace(SMALL, descriptors=16), preload=(), tiers=("landlock",))
    try:
        assert landlocked.runner.run(sandbox.run("print(1)", None, 20)).stdout == "1\n"
    finally:
        landlocked.runner.run(sandbox.aclose())


def test_rounds_share_variables(landlocked: Lab) -> None:
    assert [one.stdout for one in landlocked.rounds("x = 6", "print(x * 7)")] == ["", "42\n"]


@pytest.mark.parametrize("path", ["/etc/passwd", "/proc/self/environ", "/proc/1/status", "/etc/group"])
def test_files_of_the_machine_cannot_be_read(landlocked: Lab, path: str) -> None:
    assert last_line(landlocked.run(f"open({path!r}).read()").error).startswith("PermissionError")


def test_files_of_the_user_can_be_neither_read_nor_changed(landlocked: Lab, tmp_path: Path) -> None:
    secret = tmp_path / "secret"
    secret.write_text("secret")
    secret.chmod(0o600)
    attacks = [
        f"open({str(secret)!r}).read()",
        f"open({str(secret)!r}, 'w')",
        f"import os\nos.truncate({str(secret)!r}, 0)",
        f"import os\nos.remove({str(secret)!r})",
        f"import os\nos.rename({str(secret)!r}, 'mine')",
        f"import os\nos.link({str(secret)!r}, 'mine')\nopen('mine').read()",
        f"import os\nos.symlink({str(secret)!r}, 'mine')\nopen('mine').read()",
        f"import os\nos.listdir({str(tmp_path)!r})",
        f"import os\nos.mkdir({str(tmp_path / 'new')!r})",
        f"import os\nos.setxattr({str(secret)!r}, 'user.x', b'1')",
    ]
    for attack in attacks:
        assert last_line(landlocked.run(attack).error).startswith(("PermissionError", "OSError")), attack
    # What Landlock does not know of comes to nothing.
    landlocked.run(f"import os\nos.chmod({str(secret)!r}, 0o777)\nos.utime({str(secret)!r}, (0, 0))")
    landlocked.run(f"import os\nos.chown({str(secret)!r}, 12345, 12345)")
    found = secret.stat()
    assert (secret.read_text(), found.st_mode & 0o777, found.st_uid) == ("secret", 0o600, os.getuid())
    assert found.st_mtime > 1e9


def test_other_processes_can_be_neither_signalled_nor_slowed(landlocked: Lab) -> None:
    waiting = [sys.executable, "-c", "input()"]
    with subprocess.Popen(waiting, stdin=subprocess.PIPE, start_new_session=True) as other:
        attacks = [
            f"import os\nos.kill({other.pid}, 9)",
            f"import os\nos.killpg(os.getpgid({other.pid}), 9)",
            f"import os, signal\nsignal.pidfd_send_signal(os.pidfd_open({other.pid}), 9)",
            f"import resource\nresource.prlimit({other.pid}, resource.RLIMIT_CPU, (1, 1))",
            f"import os\nos.setpriority(os.PRIO_PROCESS, {other.pid}, 19)",
            f"import os\nos.sched_setaffinity({other.pid}, {{0}})",
            f"open('/proc/{other.pid}/mem', 'rb')",
        ]
        for attack in attacks:
            assert last_line(landlocked.run(attack).error).startswith(("PermissionError", "ProcessLookupError")), attack
        landlocked.run("import os\nos.kill(-1, 9)")
        assert other.poll() is None
        other.communicate(b"\n")


def test_the_warm_interpreter_cannot_be_ended_from_within(landlocked: Lab) -> None:
    warm = landlocked.processes()[0]
    landlocked.run("import os\nos.kill(os.getppid(), 9)")
    landlocked.run("import os\nos.kill(0, 9)")
    assert landlocked.run("print(1)").stdout == "1\n"
    assert landlocked.processes()[0] == warm


@pytest.mark.parametrize(
    "attack",
    [
        "import socket\nsocket.socket()",
        "import socket\nsocket.socket(socket.AF_UNIX)",
        "import urllib.request\nurllib.request.urlopen('http://127.0.0.1:1')",
    ],
)
def test_no_network_and_no_socket_is_reached(landlocked: Lab, attack: str) -> None:
    assert "not permitted" in last_line(landlocked.run(attack).error)


def test_no_message_reaches_a_datagram_socket_of_the_host(landlocked: Lab, tmp_path: Path) -> None:
    address = str(tmp_path / "log")
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as log:
        log.bind(address)
        log.setblocking(False)
        attack = (
            "import socket\n"
            "one, _ = socket.socketpair(socket.AF_UNIX, socket.SOCK_DGRAM)\n"
            f"one.sendto(b'forged', {address!r})"
        )
        assert "not permitted" in last_line(landlocked.run(attack).error)
        with pytest.raises(BlockingIOError):
            log.recv(100)


@pytest.mark.parametrize("attack", ["os.setsid()", "os.setpgid(0, 0)"])
def test_a_program_cannot_leave_its_process_group(landlocked: Lab, attack: str) -> None:
    code = f"import os, time\nif os.fork():\n    os.wait()\nelse:\n    {attack}"
    landlocked.run(code)
    assert last_line(landlocked.run(f"import os\n{attack}").error).startswith("PermissionError")


def test_what_a_program_leaves_running_ends_with_it(landlocked: Lab) -> None:
    code = """
import os, time
if os.fork() == 0:
    if os.fork() == 0:
        time.sleep(600)
    os._exit(0)
os.wait()
print("done")
"""
    assert landlocked.run(code).stdout == "done\n"
    until = time.monotonic() + 20
    while landlocked.programs() and time.monotonic() < until:
        time.sleep(0.05)
    assert not landlocked.programs()


def test_a_fork_bomb_is_ended(landlocked: Lab) -> None:
    bomb = "import os\nwhile True:\n    try:\n        os.fork()\n    except OSError:\n        pass"
    error = landlocked.run(bomb, timeout=20).error
    assert error is not None
    assert "processes" in error or "stopped" in error
    assert landlocked.run("print(1)").stdout == "1\n"


def test_files_beyond_the_limit_end_a_program(landlocked: Lab) -> None:
    code = "import time\nfor i in range(10): open(str(i), 'wb').write(bytes(900_000))\ntime.sleep(60)"
    assert landlocked.run(code).error == "stopped: its files had more than 4 MiB"


def test_nothing_of_a_program_is_left_on_the_disk(landlocked: Lab) -> None:
    folder = Path(landlocked.run("import os\nprint(os.getcwd())").stdout.strip())
    landlocked.run("import os\nfor i in range(100): os.makedirs(f'{i}/a/b')")
    until = time.monotonic() + 20
    while list(folder.parent.iterdir()) and time.monotonic() < until:
        time.sleep(0.05)
    assert not list(folder.parent.iterdir())


@pytest.mark.parametrize("call", ["unshare(0x10000000)", "ptrace(0, 0, 0, 0)", "chroot(b'/')"])
def test_calls_that_no_program_needs_are_refused(landlocked: Lab, call: str) -> None:
    code = f"import ctypes\nc = ctypes.CDLL(None, use_errno=True)\nprint(c.{call}, ctypes.get_errno())"
    assert landlocked.run(code).stdout == "-1 1\n"


_FILTERED = """
import ctypes, errno, struct, sys
# Load the call's number; if it is Landlock's, fail with the given error, otherwise allow the call.
steps = [(0x20, 0, 0, 0), (0x15, 0, 1, 444), (0x06, 0, 0, 0x00050000 | int(sys.argv[1])), (0x06, 0, 0, 0x7FFF0000)]
code = ctypes.create_string_buffer(b"".join(struct.pack("HBBI", *step) for step in steps))
program = ctypes.create_string_buffer(struct.pack("HP", len(steps), ctypes.addressof(code)))
libc = ctypes.CDLL(None, use_errno=True)
libc.prctl(38, 1, 0, 0, 0)
if libc.prctl(22, 2, ctypes.byref(program), 0, 0):
    sys.exit(f"no filter: {errno.errorcode[ctypes.get_errno()]}")
from evalsuite.sandbox.inside import isolation
print(isolation.read_landlock_version(), isolation.explain_missing_landlock(ctypes.get_errno()))
"""


@pytest.mark.parametrize("code", [errno.EPERM, errno.ENOSYS])
def test_landlock_behind_a_seccomp_filter_is_told_from_a_kernel_without_it(code: int) -> None:
    ended = subprocess.run([sys.executable, "-c", _FILTERED, str(code)], capture_output=True, text=True, check=False)
    if ended.stderr.startswith("no filter"):
        pytest.skip(ended.stderr)
    assert ended.stdout.startswith("0 a seccomp filter blocks it"), ended.stderr


def test_landlock_that_is_off_is_told_from_a_kernel_without_it() -> None:
    assert "boot parameter" in isolation.explain_missing_landlock(errno.EOPNOTSUPP)
    assert isolation.explain_missing_landlock(errno.EINVAL) == "this kernel has none"
