"""What programs get and what comes back, where nobody means harm."""

from __future__ import annotations

import asyncio
import re
import tempfile
import tracemalloc
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from evalsuite.core.errors import SandboxError
from evalsuite.sandbox import Sandbox, TableFile
from evalsuite.sandbox.environments import get_own_environment
from evalsuite.sandbox.execution import write_payload

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

Lab = Any
CITIES = TableFile(b"city,people\nOslo,709\nBergen,\n")


def test_what_a_program_prints_comes_back(lab: Lab) -> None:
    execution = lab.run("print('one'); print('zwei é 三', end='')")
    assert (execution.stdout, execution.error, execution.timed_out) == ("one\nzwei é 三", None, False)
    assert 0 < execution.seconds < 20


@settings(max_examples=25, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(written=st.binary(max_size=300))
def test_bytes_that_are_no_text_come_back_as_replacement_characters(bare: Lab, written: bytes) -> None:
    execution = bare.run(f"import os; _ = os.write(1, {written!r})")
    assert execution.stdout == written.decode("utf-8", "replace")
    assert execution.error is None


def test_an_exception_comes_back_as_the_traceback_of_the_programs_own_lines(lab: Lab) -> None:
    execution = lab.run("print('before')\ndef half(x):\n    return pd.to_numeric(x)\nhalf(['a'])")
    assert execution.stdout == "before\n"
    assert execution.error is not None
    assert 'File "<program>", line 3, in half\n    return pd.to_numeric(x)' in execution.error
    assert "ValueError: Unable to parse string" in execution.error
    assert execution.error.count("Traceback") == 1, "what pandas raised within is left out"
    assert "site-packages" not in execution.error


@pytest.mark.parametrize(
    ("code", "error"),
    [
        ("print('a'", "SyntaxError: '(' was never closed"),
        ("1/0", "ZeroDivisionError: division by zero"),
        ("import sys; sys.exit('no such column')", "SystemExit: no such column"),
        ("raise SystemExit(3)", "SystemExit: 3"),
        ("raise KeyboardInterrupt", "KeyboardInterrupt"),
        ("raise BaseException('x')", "BaseException: x"),
        ("class E(Exception):\n    def __str__(self): raise ValueError\nraise E", "E"),
        ("input()", "EOFError: EOF when reading a line"),
        ("import no_such_module", "ModuleNotFoundError: No module named 'no_such_module'"),
        ("x = '\ud800'", "surrogates not allowed"),
        ("x = 1\0", "null bytes"),
        ("import os; os.close(1)", "OSError: [Errno 9] Bad file descriptor"),
    ],
)
def test_whatever_ends_a_program_early_is_its_error(bare: Lab, code: str, error: str) -> None:
    execution = bare.run(code)
    assert execution.error is not None
    assert error in execution.error
    assert not execution.timed_out


@pytest.mark.parametrize("ending", ["exit()", "quit()", "exit(0)", "raise SystemExit", "import os; os._exit(0)"])
def test_a_program_may_end_itself_in_good_order(bare: Lab, ending: str) -> None:
    execution = bare.run(f"print('done', flush=True)\n{ending}\nprint('never')")
    assert (execution.stdout, execution.error) == ("done\n", None)


def test_attempts_to_install_packages_do_no_harm(bare: Lab) -> None:
    execution = bare.run(
        "import os, subprocess, sys\n"
        "subprocess.run([sys.executable, '-m', 'pip', 'install', 'pandas'])\n"
        "os.system('pip install pandas')\n"
        "print('and on')"
    )
    assert execution.error is None
    assert execution.stdout.endswith("and on\n")


def test_a_program_is_main_and_can_show_its_own_source(bare: Lab) -> None:
    code = (
        "import dataclasses, inspect, pickle\n"
        "@dataclasses.dataclass\n"
        "class Point:\n"
        "    x: int = 1\n"
        "print(__name__, pickle.loads(pickle.dumps(Point())), Point.__annotations__)\n"
        "print(inspect.getsource(inspect.currentframe()).splitlines()[0])"
    )
    assert bare.run(code).stdout == ("__main__ Point(x=1) {'x': <class 'int'>}\nimport dataclasses, inspect, pickle\n")


def test_chance_is_the_same_in_every_run(lab: Lab, new_lab: Callable[..., Lab]) -> None:
    code = "import random; print(random.random(), np.random.rand(), hash('a'), list({'x', 'y', 'z'}))"
    first, second, elsewhere = lab.run(code), lab.run(code), new_lab(preload=("numpy",)).run(code)
    assert first.error is None
    assert first.stdout == second.stdout == elsewhere.stdout


def test_a_table_comes_from_a_path_as_data(lab: Lab, tmp_path: Path) -> None:
    path = tmp_path / "cities.csv"
    path.write_bytes(b"city,people\nOslo,709\nBergen,\n")
    found = lab.run(
        f"print(df.shape, df.people.sum())\nprint(__import__('os').path.exists({str(tmp_path)!r}))", {"df": path}
    )
    assert (found.stdout, found.error) == ("(2, 2) 709.0\nFalse\n", None)
    assert lab.run("print(df.city[0])", {"df": str(path)}).stdout == "Oslo\n"


@pytest.mark.parametrize(
    ("header_rows", "columns", "rows"),
    [(0, "[0, 1]", "3"), (1, "['a', 'b']", "2"), (2, "[('a', '1'), ('b', '2')]", "1")],
)
def test_as_many_header_rows_as_said_name_the_columns(lab: Lab, header_rows: int, columns: str, rows: str) -> None:
    table = TableFile(b"a,b\n1,2\n3,4\n", header_rows)
    assert lab.run("print(list(df.columns)); print(len(df))", {"df": table}).stdout == f"{columns}\n{rows}\n"


def test_byte_order_marks_and_broken_characters_do_not_stop_a_table(lab: Lab) -> None:
    table = TableFile(b"\xef\xbb\xbfname\ncaf\xe9\n")
    assert lab.run("print(list(df.columns), df.name[0])", {"df": table}).stdout == "['name'] caf\ufffd\n"


def test_the_file_of_a_table_never_passes_through_the_memory_of_this_process(tmp_path: Path) -> None:
    file = tmp_path / "large.csv"
    file.write_bytes(b"a,b\n" + b"1,2\n" * 4_000_000)
    with tempfile.TemporaryFile() as payload:
        tracemalloc.start()
        write_payload(payload, "print(1)", {"df": file}, is_last=True)
        _, peak = tracemalloc.get_traced_memory()
        tracemalloc.stop()
        payload.seek(4 + file.stat().st_size)
        assert (payload.read(4), peak < 1 << 20) == (b"1,2\n", True)


def test_a_frame_keeps_its_types_and_index(lab: Lab) -> None:
    frame = pd.DataFrame(
        {"when": pd.to_datetime(["2024-02-29", "NaT"]), "code": ["007", None], "n": np.array([1, 2], dtype="int8")},
        index=pd.Index(["x", "y"], name="key"),
    )
    printed = "print(df.dtypes.astype(str).to_dict(), df.index.name, df.code.iloc[0], df.to_csv())"
    expected = f"{frame.dtypes.astype(str).to_dict()} key 007 {frame.to_csv()}\n"
    assert lab.run(printed, {"df": frame}).stdout == expected


def test_several_tables_have_their_own_names(lab: Lab) -> None:
    tables = {"left": CITIES, "右": TableFile(b"city,country\nOslo,NO\n")}
    assert lab.run("print(left.merge(右).country[0])", tables).stdout == "NO\n"


@pytest.mark.parametrize(
    ("tables", "message"),
    [
        ({"df": "no/such.csv"}, "the table no/such.csv cannot be read: No such file"),
        ({"a b": CITIES}, "'a b', which cannot name a variable"),
        ({"df": [[1]]}, "the table 'df' is a list: give a path, a TableFile or a pandas DataFrame"),
        ({"df": TableFile(b"")}, "the program's tables could not be loaded: EmptyDataError"),
        ({"df": TableFile(b"a\n1,2,3\n1\n1,2,3,4,5\n")}, "the program's tables could not be loaded: ParserError"),
        ({"df": TableFile(b"a\n1\n", 5)}, "the program's tables could not be loaded"),
    ],
)
def test_a_table_that_cannot_be_loaded_is_an_error_and_no_programs_failure(lab: Lab, tables: Any, message: str) -> None:
    with pytest.raises(SandboxError, match=re.escape(message)):
        lab.run("print(1)", tables)


def test_a_table_too_large_for_the_time_is_an_error_and_no_programs_failure(lab: Lab) -> None:
    table = TableFile(b"a,b\n" + b"1,2\n" * 4_000_000)
    with pytest.raises(SandboxError, match=r"could not be loaded within its 0.001 s and its limits \(timeout\)"):
        lab.run("print(1)", {"df": table}, timeout=0.001)


def test_what_is_not_loaded_beforehand_can_be_imported(bare: Lab) -> None:
    found = bare.run("import sys\nprint('decimal' in sys.modules)\nimport decimal\nprint(decimal.Decimal(1))")
    assert found.stdout == "False\n1\n"


def test_a_module_that_is_to_be_loaded_beforehand_may_be_missing(new_lab: Callable[..., Lab]) -> None:
    assert new_lab(preload=("no_such_module",)).run("print(2)").stdout == "2\n"


def test_without_pandas_tables_are_an_error_that_says_what_to_install(new_lab: Callable[..., Lab]) -> None:
    bare = replace(get_own_environment(), packages=())
    with pytest.raises(SandboxError, match=r"No module named 'pandas': pip install 'evalsuite\[sandbox\]'"):
        new_lab(environment=bare).run("print(len(df))", {"df": CITIES})


def test_variables_live_on_between_the_rounds_of_a_session(lab: Lab) -> None:
    first, second, third = lab.rounds(
        "big = df[df.people > 100]\ndef f(): return len(big)",
        "1/0",
        "print(f(), big.city.iloc[0])",
        tables={"df": CITIES},
    )
    assert (first.stdout, first.error) == ("", None)
    assert second.error is not None
    assert 'File "<program 2>", line 1' in second.error
    assert (third.stdout, third.error) == ("1 Oslo\n", None)


def test_a_session_outlives_exit_and_starts_afresh_after_the_death_of_its_process(lab: Lab) -> None:
    codes = ("x = 1\nexit()", "print(x)", "import os; os._exit(4)", "print('x' in globals(), len(df))")
    first, second, third, fourth = lab.rounds(*codes, tables={"df": CITIES})
    assert first.error is None
    assert second.stdout == "1\n"
    assert third.error == "the program's process ended with status 4"
    assert fourth.stdout == "False 2\n"


def test_a_round_that_is_stopped_costs_the_variables_and_no_more(bare: Lab) -> None:
    first, second, third = bare.rounds(
        "x = 1\nprint(x)", "while True: pass", "print('x' in globals())", timeout=(20, 0.5, 20)
    )
    assert first.stdout == "1\n"
    assert second.timed_out
    assert third.stdout == "False\n"


def test_rounds_asked_for_at_once_run_one_after_the_other(bare: Lab) -> None:
    async def both() -> list[str]:
        async with bare.sandbox.session() as session:
            rounds = await asyncio.gather(session.run("x = 1"), session.run("x += 1"), session.run("print(x)"))
            return [execution.stdout for execution in rounds]

    assert bare.runner.run(both()) == ["", "", "2\n"]


def test_one_sandbox_serves_one_event_loop_after_another() -> None:
    sandbox = Sandbox(preload=())

    async def printed() -> str:
        return (await sandbox.run("print(5)")).stdout

    assert [asyncio.run(printed()), asyncio.run(printed())] == ["5\n", "5\n"]
    asyncio.run(sandbox.aclose())


def test_a_closed_sandbox_starts_anew_when_it_is_used(bare: Lab) -> None:
    before = bare.warm_interpreter()
    bare.runner.run(bare.sandbox.aclose())
    assert bare.run("print(5)").stdout == "5\n"
    assert bare.warm_interpreter() != before
