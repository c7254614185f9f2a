"""What programs try to reach outside: files, environment, places to write, the network, the kernel."""

from __future__ import annotations

import ast
import os
import platform
import socket
import sys
import tempfile
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from evalsuite.sandbox import sandbox, tiers
from evalsuite.sandbox.environments import get_own_environment, get_own_interpreter
from evalsuite.sandbox.inside import DEVICES
from evalsuite.sandbox.inside.calls import DENIED

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

Lab = Any


@pytest.fixture
def secret(tmp_path: Path) -> Path:
    path = tmp_path / "secret.txt"
    path.write_text("the answer is 42")
    return path


def test_the_hosts_files_cannot_be_read(bare: Lab, secret: Path) -> None:
    paths = [
        *(secret, Path.home() / ".bashrc", Path(__file__), Path.cwd() / "pyproject.toml"),
        *("/etc/passwd", "/etc/hostname", "/etc/resolv.conf", "/etc/machine-id", "/var/log", "/boot", "/run"),
        *("/proc/self/environ", "/proc/1/environ", "/proc/1/root", "/proc/cpuinfo", "/proc/sys", "/sys/class"),
        *("/dev/mem", "/dev/kmsg", "/dev/tty", "/dev/fd", "/dev/pts", "/dev/mqueue", "/oldroot", "/newroot"),
    ]
    found = bare.run(
        "import os\n"
        f"for path in {list(map(str, paths))!r}:\n"
        "    for read in (lambda: open(path, 'rb').read(1), lambda: os.listdir(path), lambda: os.readlink(path)):\n"
        "        try: print(path, read())\n"
        "        except OSError: pass\n"
    )
    assert (found.stdout, found.error) == ("", None)


def test_nothing_is_seen_but_the_interpreter_its_packages_and_system_libraries(bare: Lab) -> None:
    allowed = [*tiers.list_python_paths(get_own_environment()), *tiers.SYSTEM_LIBRARIES, *tiers.SYSTEM_FILES]
    allowed += ["/sandbox/inside", *DEVICES]
    found = bare.run(
        "import os\n"
        f"allowed = {allowed!r}\n"
        "for folder, folders, files in os.walk('/'):\n"
        "    folders[:] = [name for name in folders if os.path.join(folder, name) not in allowed]\n"
        "    for name in files:\n"
        "        if os.path.join(folder, name) not in allowed: print(os.path.join(folder, name))\n"
    )
    assert (found.stdout, found.error) == ("", None)


def test_the_hosts_environment_is_not_there(new_lab: Callable[[], Lab], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "sk-secret")
    found = new_lab().run("import os; print(dict(os.environ))")
    environment = ast.literal_eval(found.stdout)
    assert environment.pop("PWD") == "/sandbox"
    assert environment.pop("LC_CTYPE", "C.UTF-8") == "C.UTF-8"
    assert environment == tiers.make_environment_variables(get_own_interpreter())


def test_descriptors_of_the_host_are_not_inherited(bare: Lab, secret: Path) -> None:
    with secret.open() as file:
        os.set_inheritable(file.fileno(), True)
        found = bare.run(
            "import os\n"
            "for number in range(1024):\n"
            "    try: print(number, os.fstat(number).st_mode & 0o170000 == 0o140000)\n"
            "    except OSError: pass\n"
        )
    assert found.stdout.splitlines() == ["0 False", "1 False", "2 False", "3 True", "4 False", "5 False"]


def test_nothing_can_be_written_but_the_programs_own_files(bare: Lab) -> None:
    found = bare.run(
        "import os\n"
        "written = set()\n"
        "for folder, _, files in os.walk('/'):\n"
        "    try:\n"
        "        open(os.path.join(folder, 'mine'), 'w').close()\n"
        "        written.add(folder)\n"
        "    except OSError: pass\n"
        "    for name in files if folder == '/dev' else files[:2]:\n"
        "        path = os.path.join(folder, name)\n"
        "        if os.access(path, os.W_OK): written.add(path)\n"
        "print(sorted(written))\n"
    )
    devices = ["/dev/full", "/dev/null", "/dev/random", "/dev/urandom", "/dev/zero"]
    assert found.error is None
    assert ast.literal_eval(found.stdout) == [*devices, "/tmp"]


@pytest.fixture
def packages_below_tmp(monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """A folder of packages where each program has files of its own, and a secret beside it."""
    with tempfile.TemporaryDirectory(dir="/tmp") as folder:
        packages = Path(folder) / "env" / "packages"
        packages.mkdir(parents=True)
        (packages / "late.py").write_text("HERE = 'imported'\n")
        (packages.parent / "secret.txt").write_text("the answer is 42")
        own = get_own_environment()
        more = replace(own, packages=(*own.packages, str(packages)))
        monkeypatch.setattr(sandbox, "get_own_environment", lambda: more)
        yield packages


def test_an_environment_below_tmp_is_there_read_only_and_nothing_beside_it(
    new_lab: Callable[[], Lab], packages_below_tmp: Path
) -> None:
    lab, packages = new_lab(), packages_below_tmp
    found = lab.run(
        "import os, late\n"
        f"packages = {str(packages)!r}\n"
        "print(late.HERE, os.listdir(packages), os.listdir(os.path.dirname(packages)))\n"
        "open('/tmp/mine', 'w').write('x')\n"
        "for change in (\n"
        "    lambda: open(late.__file__, 'w'), lambda: open(packages + '/mine', 'w'),\n"
        "    lambda: os.unlink(late.__file__), lambda: os.rename(packages, '/tmp/moved'),\n"
        "    lambda: os.rmdir(packages), lambda: os.chmod(late.__file__, 0o777),\n"
        "):\n"
        "    try: print('changed', change())\n"
        "    except OSError: pass\n"
    )
    assert (found.stdout, found.error) == ("imported ['late.py'] ['packages']\n", None)
    assert [path.name for path in packages.iterdir()] == ["late.py"]
    left = lab.run("import os; print(os.path.exists('/tmp/mine'), __import__('late').HERE)")
    assert left.stdout == "False imported\n"


@pytest.mark.parametrize(
    "change",
    [
        "os.chmod(os.__file__, 0o777)",
        "os.unlink(os.__file__)",
        "os.rename(os.__file__, os.__file__ + 'x')",
        "os.utime(os.__file__)",
        "os.truncate(os.__file__, 0)",
        "os.mkdir('/mine')",
        "os.symlink('/tmp', '/mine')",
        "os.link(os.__file__, '/tmp/mine')",
        "os.mknod('/tmp/memory', 0o020666, os.makedev(1, 1))",
        "os.chroot('/tmp')",
        "os.setuid(0)",
        "os.setgroups([0])",
        "os.sethostname('mine') if hasattr(os, 'sethostname') else __import__('socket').sethostname('mine')",
        "os.nice(-10)",
        "os.sched_setscheduler(0, os.SCHED_FIFO, os.sched_param(1))",
        "__import__('time').clock_settime(0, 0)",
        "__import__('resource').setrlimit(__import__('resource').RLIMIT_AS, (1 << 40, 1 << 40))",
        "__import__('fcntl').flock(os.open(os.__file__, os.O_RDONLY), 2)",
        "__import__('fcntl').fcntl(os.open(os.__file__, os.O_RDONLY), 1024, 0)",
        "__import__('fcntl').fcntl(os.open('/tmp', os.O_RDONLY), 1026, 1)",
    ],
)
def test_what_would_change_the_machine_is_refused(bare: Lab, change: str) -> None:
    execution = bare.run(f"import os\ntry: {change}\nexcept (OSError, ValueError) as error: print('refused')")
    assert (execution.stdout, execution.error) == ("refused\n", None)


def test_no_network_is_reached(bare: Lab) -> None:
    with socket.create_server(("127.0.0.1", 0)) as server, socket.socket(socket.AF_UNIX) as hidden:
        server.setblocking(False)
        hidden.bind("\0evalsuite-test-walls")
        hidden.listen()
        hidden.setblocking(False)
        found = bare.run(
            "import socket, urllib.request, http.client\n"
            f"port = {server.getsockname()[1]}\n"
            "def unix():\n"
            "    s = socket.socket(socket.AF_UNIX)\n"
            "    s.connect('\\0evalsuite-test-walls')\n"
            "def udp():\n"
            "    socket.socket(socket.AF_INET, socket.SOCK_DGRAM).sendto(b'x', ('127.0.0.1', port))\n"
            "for attempt in (\n"
            "    lambda: socket.create_connection(('127.0.0.1', port), 1), unix, udp,\n"
            "    lambda: socket.create_connection(('1.1.1.1', 53), 1),\n"
            "    lambda: socket.socket(socket.AF_INET6), lambda: socket.socket(socket.AF_NETLINK, socket.SOCK_RAW),\n"
            "    lambda: socket.socket(socket.AF_PACKET, socket.SOCK_RAW), lambda: socket.socket(40),\n"
            "    lambda: socket.getaddrinfo('example.org', 80),\n"
            "    lambda: urllib.request.urlopen(f'http://127.0.0.1:{port}', timeout=1),\n"
            "):\n"
            "    try: print('reached', attempt())\n"
            "    except OSError: pass\n"
        )
        assert (found.stdout, found.error) == ("", None)
        for listener in (server, hidden):
            with pytest.raises(BlockingIOError):
                listener.accept()


@pytest.mark.parametrize("namespace", ["user", "pid", "ipc", "uts", "cgroup", "net", "mnt"])
def test_every_namespace_is_a_new_one(bare: Lab, namespace: str) -> None:
    bare.run("pass")
    inside = Path(f"/proc/{bare.warm_interpreter()}/ns/{namespace}").readlink()
    assert inside != Path(f"/proc/self/ns/{namespace}").readlink()


@pytest.mark.parametrize("name", sorted(DENIED))
def test_calls_that_no_program_needs_are_refused(bare: Lab, name: str) -> None:
    number = DENIED[name][platform.machine() == "aarch64"]
    if number is None:
        pytest.skip("this machine has no such call")
    found = bare.run(
        "import ctypes\n"
        "libc = ctypes.CDLL(None, use_errno=True)\n"
        f"print(libc.syscall({number}, 0, 0, 0, 0, 0, 0), ctypes.get_errno())"
    )
    assert found.stdout == "-1 1\n", "EPERM"


def test_new_namespaces_cannot_be_made_by_any_way_to_fork(bare: Lab) -> None:
    numbers = {"x86_64": (56, 435), "aarch64": (220, 435)}[platform.machine()]
    found = bare.run(
        "import ctypes\n"
        "libc = ctypes.CDLL(None, use_errno=True)\n"
        "for flag in (0x20000, 0x2000000, 0x4000000, 0x8000000, 0x10000000, 0x20000000, 0x40000000):\n"
        f"    print(libc.syscall({numbers[0]}, flag | 17, 0, 0, 0, 0), ctypes.get_errno())\n"
        "arguments = (ctypes.c_uint64 * 8)(0x10000000, 0, 0, 0, 17)\n"
        f"print(libc.syscall({numbers[1]}, arguments, 64), ctypes.get_errno())\n"
    )
    assert found.stdout == "-1 1\n" * 7 + "-1 38\n"


@pytest.mark.skipif(platform.machine() != "x86_64", reason="the call tables of 32-bit programs are x86's")
def test_the_call_tables_of_other_word_lengths_are_closed(bare: Lab) -> None:
    x32 = (
        "import ctypes\n"
        "libc = ctypes.CDLL(None, use_errno=True)\n"
        "print(libc.syscall(0x40000000 + 39), ctypes.get_errno())"
    )
    assert bare.run(x32).stdout == "-1 1\n"
    # mov eax, 20 (getpid of 32-bit programs); int 0x80; ret
    i386 = (
        "import ctypes, mmap\n"
        "code = mmap.mmap(-1, 4096, prot=mmap.PROT_READ | mmap.PROT_WRITE | mmap.PROT_EXEC)\n"
        "code.write(bytes.fromhex('b814000000cd80c3'))\n"
        "print(ctypes.CFUNCTYPE(ctypes.c_int)(ctypes.addressof(ctypes.c_char.from_buffer(code)))())\n"
    )
    execution = bare.run(i386)
    assert (execution.stdout, execution.error) == ("", "the program's process was killed (SIGSYS)")


def test_the_program_has_no_power_in_its_own_namespace(bare: Lab) -> None:
    found = bare.run(
        "import ctypes, os\n"
        "libc = ctypes.CDLL(None, use_errno=True)\n"
        "header, data = (ctypes.c_uint32 * 2)(0x20080522, 0), (ctypes.c_uint32 * 6)()\n"
        "libc.capget(header, data)\n"
        "print(list(data), libc.prctl(39, 0, 0, 0, 0), os.getuid(), os.geteuid(), os.getppid(), os.getpid())\n"
    )
    assert found.stdout == f"{[0] * 6} 1 1000 1000 0 1\n"


def test_the_interpreter_is_the_one_that_runs_the_tests(bare: Lab) -> None:
    assert bare.run("import sys; print(sys.version)").stdout == f"{sys.version}\n"
