"""Programs that try to reach each other, the warm interpreter, or those that come after them."""

from __future__ import annotations

import asyncio
import contextlib
import os
import resource
import time
from pathlib import Path
from typing import Any

import pytest

from evalsuite.core.errors import SandboxError

Lab = Any


@pytest.mark.parametrize(
    "attack",
    [
        "os.kill(-1, number)",
        "os.kill(0, number)",
        "os.killpg(0, number)",
        "os.killpg(os.getpgrp(), number)",
        "os.kill(os.getppid(), number)",
        "[os.kill(pid, number) for pid in range(2, 500)]",
        "os.setpgid(0, 1) or os.kill(0, number)",
        "os.fork() or (os.setsid(), os.kill(-1, number), os.kill(0, number))",
    ],
)
def test_signals_reach_neither_the_warm_interpreter_nor_a_neighbour(bare: Lab, attack: str) -> None:
    bare.run("pass")
    before = bare.processes()
    attacker = (
        "import os, signal, time\n"
        "time.sleep(0.1)\n"
        "for number in (signal.SIGTERM, signal.SIGSTOP, signal.SIGUSR1, signal.SIGKILL):\n"
        f"    try: {attack}\n"
        "    except OSError: pass\n"
    )
    neighbour, _ = bare.at_once("import time; time.sleep(0.3); print('alive')", attacker)
    assert (neighbour.stdout, neighbour.error) == ("alive\n", None)
    assert bare.processes()[:2] == before[:2]
    assert all("T" not in state(pid) for pid in before[:2])


def state(pid: int) -> str:
    return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]


def test_other_processes_can_be_neither_seen_nor_traced(bare: Lab) -> None:
    spy = (
        "import ctypes, os\n"
        "libc = ctypes.CDLL(None, use_errno=True)\n"
        "buffer = ctypes.create_string_buffer(8)\n"
        "for pid in range(2, 3000):\n"
        "    for call in (lambda pid: os.kill(pid, 0), os.pidfd_open, os.getpgid, os.getsid):\n"
        "        try: print(pid, call(pid))\n"
        "        except OSError: pass\n"
        "for request in (0, 16, 0x4206):\n"
        "    for pid in (0, 1, 2): print(libc.ptrace(request, pid, 0, 0), ctypes.get_errno())\n"
        "print(os.listdir('/proc'))\n"
    )
    _, found = bare.at_once("import time; time.sleep(0.3)", spy)
    assert (found.stdout, found.error) == ("-1 1\n" * 9 + "[]\n", None)


@pytest.mark.parametrize(
    "junk",
    [
        "os.write(number, b'o')",
        "os.write(number, b't')",
        'os.write(number, b\'{"key": 1, "ending": "ok", "seconds": 0, "alive": true}\' * 100)',
        "[os.write(number, os.urandom(100)) for _ in range(200)]",
        "os.close(number)",
        "os.dup2(0, number)",
        "os.truncate(number, 0) if number == 4 else os.read(number, 1)",
    ],
)
def test_what_a_program_does_to_its_descriptors_concerns_it_alone(bare: Lab, junk: str) -> None:
    bare.run("pass")
    before = bare.processes()
    attack = (
        "import os\n"
        "for number in (*range(3, 128), 0, 2, 1):\n"
        "    try:\n"
        "        os.set_blocking(number, False)\n"
        f"        {junk}\n"
        "    except OSError: pass\n"
    )
    _, neighbour = bare.at_once(attack, "import time; time.sleep(0.2); print('well')")
    assert (neighbour.stdout, neighbour.error) == ("well\n", None)
    assert bare.rounds("print(1)", attack, "print(3)")[0].stdout == "1\n"
    assert bare.run("print('after')").stdout == "after\n"
    assert bare.processes()[:2] == before[:2]


@pytest.mark.parametrize("status", [b"t", b"u", b"l", b"?", b"tt", b""])
def test_a_program_cannot_pass_its_failure_off_as_the_sandboxs(bare: Lab, status: bytes) -> None:
    execution = bare.run(f"import os\nos.write(3, {status!r})\n1/0")
    assert execution.error is not None


def test_a_program_that_says_that_it_is_done_is_done(bare: Lab) -> None:
    execution = bare.run("import os, time\nprint('mine')\nos.write(3, b'o')\ntime.sleep(60)", timeout=30)
    assert (execution.stdout, execution.error) == ("mine\n", None)
    assert execution.seconds < 30


def test_closing_everything_leaves_the_ending_to_the_process_itself(bare: Lab) -> None:
    assert bare.run("import os; os.closerange(3, 128)").error is None
    execution = bare.run("import os; os.closerange(0, 128)\nos._exit(5)")
    assert execution.error == "the program's process ended with status 5"
    silent = "import os, time; print('!', flush=True); os.closerange(0, 128)\ntime.sleep(600)"
    assert bare.run_as_long_as_it_takes_to_print(silent)[0].timed_out


def test_nothing_of_one_program_is_left_for_the_next(lab: Lab) -> None:
    spoil = (
        "import builtins, os, random, sys\n"
        "pd.DataFrame.sum = lambda self: 'spoilt'\n"
        "builtins.print = lambda *args: None\n"
        "builtins.left = sys.left = np.left = 'behind'\n"
        "os.environ['LEFT'] = 'behind'\n"
        "pd.set_option('display.max_rows', 1)\n"
        "random.seed(5); np.random.seed(5)\n"
        "open('/tmp/left', 'w').close(); open('/dev/shm/left', 'w').close()\n"
        "left = 1\n"
    )
    look = (
        "import builtins, os, random, sys\n"
        "print(pd.DataFrame({'a': [1, 2]}).sum().tolist(), pd.get_option('display.max_rows'))\n"
        "print([hasattr(x, 'left') for x in (builtins, sys, np)], 'left' in globals(), 'LEFT' in os.environ)\n"
        "print('left' in os.listdir('/tmp'), random.random(), np.random.rand())\n"
    )
    clean = lab.run(look).stdout
    assert clean.startswith("[3] 60\n[False, False, False] False False\nFalse ")
    assert lab.run(spoil).error is None
    assert lab.run(look).stdout == clean
    assert lab.rounds(spoil, "builtins.print", look)[2].stdout == ""
    assert lab.rounds(look)[0].stdout == clean


def test_descriptors_carry_nothing_from_one_program_to_the_next(bare: Lab) -> None:
    mark = (
        "import fcntl, os\n"
        "for number in range(3):\n"
        "    before = fcntl.fcntl(number, fcntl.F_GETFL)\n"
        "    fcntl.fcntl(number, fcntl.F_SETFL, before | os.O_NONBLOCK)\n"
        "    print(bool(before & os.O_NONBLOCK), fcntl.fcntl(number, fcntl.F_GETFL) & os.O_NONBLOCK > 0)\n"
    )
    assert [bare.run(mark).stdout for _ in range(2)] == ["False True\n" * 3] * 2


def test_no_program_finds_anothers_code_tables_or_output_in_its_memory(bare: Lab) -> None:
    marker = os.urandom(8).hex()
    assert bare.run(f"x = '{marker}'\nprint(x)").stdout == f"{marker}\n"
    search = (
        "import ctypes, os\n"
        f"halves = {marker[:8]!r}, {marker[8:]!r}\n"
        "libc = ctypes.CDLL(None, use_errno=True)\n"
        "libc.sbrk.restype = ctypes.c_void_p\n"
        "libc.write.argtypes = ctypes.c_int, ctypes.c_void_p, ctypes.c_size_t\n"
        "read, write = os.pipe()\n"
        "def pages(start, stop):\n"
        "    for page in range(start & ~4095, stop, 4096):\n"
        "        if libc.write(write, page, 4096) == 4096: yield os.read(read, 4096)\n"
        "top = libc.sbrk(0)\n"
        "near = id(object())\n"
        "memory = b''.join([*pages(top - (32 << 20), top), *pages(near - (32 << 20), near + (32 << 20))])\n"
        "wanted = halves[0].encode() + halves[1].encode()\n"
        "known = b'the quick brown' + b' fox'\n"
        "print(len(memory) > 1 << 20, known in memory, memory.count(wanted))\n"
        "'the quick brown fox'\n"
    )
    found = bare.run(search)
    assert (found.stdout, found.error) == ("True True 0\n", None)


def test_neighbours_cannot_meet_in_shared_memory_or_by_sockets(bare: Lab) -> None:
    meet = (
        "import os, socket, time, multiprocessing.shared_memory as shared\n"
        "found = []\n"
        "try: memory = shared.SharedMemory('meet', create=True, size=64)\n"
        "except FileExistsError: found.append('memory')\n"
        "ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_STREAM)\n"
        "for call in (lambda: ours.bind('\\0meet'), lambda: ours.connect('\\0meet'), lambda: ours.listen()):\n"
        "    try: found.append(call())\n"
        "    except OSError: pass\n"
        "open('/tmp/place', 'a').write('x')\n"
        "time.sleep(0.3)\n"
        "print(found, os.path.getsize('/tmp/place'))\n"
        "os._exit(print(end='', flush=True) or 0)\n"
    )
    assert [execution.stdout for execution in bare.at_once(meet, meet)] == ["[] 1\n"] * 2


def test_children_left_behind_die_with_their_program(bare: Lab) -> None:
    bare.run("pass")
    left = (
        "import os, time\n"
        "for _ in range(5):\n"
        "    if os.fork() == 0:\n"
        "        os.setsid()\n"
        "        if os.fork(): os._exit(0)\n"
        "        while True: time.sleep(1)\n"
        "print('done')\n"
    )
    assert bare.run(left).stdout == "done\n"
    assert wait_for(lambda: not bare.programs())


def test_between_its_rounds_nothing_of_a_session_runs(bare: Lab) -> None:
    busy = (
        "import os, threading, time\n"
        "ticks = 0\n"
        "def tick():\n"
        "    global ticks\n"
        "    while True:\n"
        "        ticks += 1\n"
        "        time.sleep(0.001)\n"
        "threading.Thread(target=tick, daemon=True).start()\n"
        "while not ticks: time.sleep(0.001)\n"
        "if os.fork() == 0:\n"
        "    while True: pass\n"
    )

    async def observe() -> tuple[int, float, list[str]]:
        async with bare.sandbox.session() as session:
            await session.run(busy)
            programs = bare.programs()
            assert wait_for(lambda: states_of_threads(programs[0]) == {"T"})
            before = cpu(programs[0])
            await asyncio.sleep(0.3)
            spent = cpu(programs[0]) - before
            rounds = [
                await session.run("print(ticks > 0)"),
                await session.run("a = ticks\nwhile ticks == a: time.sleep(0.01)\nprint(ticks > a)", 20),
            ]
            return len(programs), spent, [execution.stdout for execution in rounds]

    count, spent, printed = bare.runner.run(observe())
    assert count == 1, "the forked child is gone"
    assert spent == 0
    assert printed == ["True\n", "True\n"]


def states_of_threads(pid: int) -> set[str]:
    stats = Path(f"/proc/{pid}/task").glob("*/stat")
    return {stat.read_text().rpartition(")")[2].split()[0] for stat in stats}


def cpu(pid: int) -> int:
    return sum(map(int, Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[11:13]))


def test_a_session_whose_processes_will_not_go_is_ended(bare: Lab) -> None:
    stubborn = "import os, time\nx = 1\nif os.fork() == 0: time.sleep(60)\nos.write(3, b'o')\ntime.sleep(60)"
    first, second = bare.rounds(stubborn, "print('x' in globals())")
    assert first.error is None
    assert second.stdout == "False\n"
    assert wait_for(lambda: not bare.programs())


def test_a_program_that_came_out_of_a_fork_ends_there(bare: Lab) -> None:
    first, second = bare.rounds(
        "import os\npid = os.fork()\nif pid: os.waitpid(pid, 0)\nprint('one', flush=True)", "print('two')"
    )
    assert first.stdout == "one\none\n"
    assert second.stdout == "two\n"


def test_the_error_of_a_forked_process_is_not_the_programs(bare: Lab) -> None:
    execution = bare.run("import os\npid = os.fork()\nif pid: os.waitpid(pid, 0)\nraise ValueError(pid > 0)")
    assert execution.error is not None
    assert execution.error.endswith("ValueError: True")
    assert bare.run("import os\nif os.fork(): os.wait()\nelse: 1/0").error is None


def test_a_cancelled_run_leaves_no_program_behind(bare: Lab) -> None:
    async def cancel() -> None:
        task = asyncio.ensure_future(bare.sandbox.run("import time; time.sleep(60)", timeout=60))
        assert await asyncio.to_thread(wait_for, lambda: len(bare.programs()) == 1)
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)

    bare.run("pass")
    bare.runner.run(cancel())
    assert wait_for(lambda: not bare.programs())
    assert bare.run("print('after')").stdout == "after\n"


def test_closing_ends_what_runs_and_says_so(new_lab: Any) -> None:
    lab = new_lab()
    bwrap = lab.processes()[0]

    async def close() -> list[Any]:
        runs = [asyncio.ensure_future(lab.sandbox.run("import time; time.sleep(60)", timeout=60)) for _ in range(20)]
        await asyncio.sleep(0.2)
        await lab.sandbox.aclose()
        return await asyncio.gather(*runs, return_exceptions=True)

    errors = lab.runner.run(close())
    assert {type(error) for error in errors} == {SandboxError}
    assert {str(error) for error in errors} == {
        "the sandbox was closed while the program ran",
        "the sandbox was closed while the program waited for its turn",
    }
    assert not Path(f"/proc/{bwrap}").exists()


def test_the_death_of_the_warm_interpreter_is_an_error_and_the_next_program_runs(bare: Lab) -> None:
    async def murder() -> Any:
        task = asyncio.ensure_future(bare.sandbox.run("import time; time.sleep(60)", timeout=60))
        await asyncio.sleep(0.2)
        os.kill(bare.warm_interpreter(), 9)
        return (await asyncio.gather(task, return_exceptions=True))[0]

    bare.run("pass")
    error = bare.runner.run(murder())
    assert isinstance(error, SandboxError)
    assert str(error).startswith("the sandbox has ended")
    assert bare.run("print('anew')").stdout == "anew\n"


def test_too_many_sessions_are_refused_without_harm_to_the_others(new_lab: Any) -> None:
    lab = new_lab()
    resource.prlimit(lab.warm_interpreter(), resource.RLIMIT_NOFILE, (60, 60))

    async def open_many() -> tuple[int, str]:
        async with contextlib.AsyncExitStack() as stack:
            sessions = []
            for count in range(60):
                sessions.append(await stack.enter_async_context(lab.sandbox.session()))
                try:
                    await sessions[-1].run(f"x = {count}")
                except SandboxError as error:
                    still = [(await session.run("print(x)")).stdout for session in sessions[:-1]]
                    assert still == [f"{number}\n" for number in range(count)]
                    return count, str(error)
        raise AssertionError("never refused")

    count, error = lab.runner.run(open_many())
    assert 5 < count < 20
    assert "a program could not be started: [Errno 24] Too many open files" in error
    assert lab.run("print('after')").stdout == "after\n"


def test_hundreds_of_programs_leak_no_process_descriptor_or_megabyte(bare: Lab) -> None:
    crash = "import os\nos.fork() or os._exit(0)\nos.pipe()\nx = bytes(1 << 20)\nos._exit(1)"
    codes = ["print(sum(range(10)))", "1/0", crash, "open('/tmp/a', 'wb').write(bytes(1 << 16))"]

    async def many(count: int) -> None:
        async def several() -> None:
            for number in range(count // 4):
                await bare.sandbox.run(codes[number % 4])

        await asyncio.gather(*(several() for _ in range(4)))

    def descriptors(pid: int) -> int:
        return len(list(Path(f"/proc/{pid}/fd").iterdir()))

    def held() -> tuple[int, int, int, int, int]:
        wait_for(lambda: not bare.programs())
        own, warm = os.getpid(), bare.warm_interpreter()
        counts = len(bare.processes()), descriptors(warm), descriptors(own)
        return (*counts, resident(warm) >> 20, resident(own) >> 20)

    bare.runner.run(many(100))
    before = held()
    bare.runner.run(many(400))
    after = held()
    assert after[:3] == before[:3]
    assert after[3] <= before[3] + 1
    assert after[4] <= before[4] + 2


def resident(pid: int) -> int:
    return int(Path(f"/proc/{pid}/statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE")


def wait_for(condition: Any) -> bool:
    for _ in range(200):
        if condition():
            return True
        time.sleep(0.02)
    return False
