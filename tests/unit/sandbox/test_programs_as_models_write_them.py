"""Ordinary programs come to the same in the sandbox as in plain Python, and tables are found where models look."""

from __future__ import annotations

import subprocess
import sys
from typing import TYPE_CHECKING

import pandas as pd
import pytest

from evalsuite.sandbox import TableFile, tiers
from evalsuite.solvers.programs import format_result

if TYPE_CHECKING:
    from collections.abc import Callable

    from tests.unit.sandbox.conftest import Lab

TABLES = {"df": TableFile(b"a,b\n1,x\n2,y\n"), "df2": TableFile(b"c\n7\n")}


@pytest.mark.parametrize(
    "program",
    [
        'import io, sys\nsys.stdout = io.TextIOWrapper(sys.stdout.buffer, encoding="utf-8")\nprint("中文")',
        'import io, sys\nsys.stdout = io.TextIOWrapper(sys.stdout.detach(), encoding="utf-8")\nprint("中文")',
        'import sys\nsys.stdout.reconfigure(encoding="utf-8")\nprint("中文")',
        'import codecs, sys\nsys.stdout = codecs.getwriter("utf-8")(sys.stdout.buffer)\nprint("中文")',
        'import sys\n_ = sys.stdout.buffer.write(b"raw")',
        (
            'import threading, time\nsay = lambda: (time.sleep(0.1), print("late"))\n'
            'threading.Thread(target=say).start()\nprint("early")'
        ),
        'import atexit\natexit.register(print, "bye")\nprint("hello")',
        'import atexit, sys\natexit.register(print, "bye")\nsys.exit(0)',
        'import sys\nprint("done")\nsys.stdout.close()',
        (
            'import contextlib, io\nwith contextlib.redirect_stdout(io.StringIO()) as s:\n    print("in")\n'
            'print(s.getvalue(), "out")'
        ),
        "from __future__ import annotations\ndef f(x: nowhere): return x\nprint(f(1))",
        'if __name__ == "__main__":\n    print(1)',
        'print("no end", end="")',
    ],
)
def test_a_program_prints_what_it_prints_in_plain_python(tier_lab: Lab, program: str) -> None:
    command = [sys.executable, "-X", "utf8", "-c", program]
    plain = subprocess.run(command, capture_output=True, check=True)
    execution = tier_lab.run(program)
    assert (execution.stdout, execution.error) == (plain.stdout.decode(), None)


@pytest.mark.parametrize(
    "program",
    [
        'd = pd.read_csv("/mnt/tmp.csv")\nprint(d["a"].sum())',
        'd = pd.read_csv("data/df.csv")\nprint(d["a"].sum())',
        'd = pd.read_csv("df.csv", index_col="b")\nprint(d["a"].sum())',
        'd = pd.read_excel("/mnt/data/table.xlsx")\nprint(d["a"].sum())',
        'd = pd.read_csv("table.tsv", sep="\\t")\nprint(d["a"].sum())',
        'import csv\nprint(sum(int(r["a"]) for r in csv.DictReader(open("/tmp/x/y.csv"))))',
        'from pathlib import Path\nprint(sum(int(l[0]) for l in Path("t.csv").read_text().split()[1:]))',
        'import numpy\nprint(int(numpy.loadtxt("t.csv", delimiter=",", skiprows=1, usecols=0).sum()))',
        'import glob\nprint(pd.read_csv(glob.glob("*.csv")[0])["a"].sum())',
    ],
)
def test_a_read_of_a_path_that_the_program_made_up_gets_the_table(tier_lab: Lab, program: str) -> None:
    execution = tier_lab.run(program, {"df": TABLES["df"]})
    assert (execution.stdout, execution.error) == ("3\n", None)


NOTEBOOK = {
    "the file of the program": ("print(__file__)", "program.py\n"),
    "display": ("display(1, 'a')", "1\na\n"),
    "an await at the top level": ("import asyncio\nawait asyncio.sleep(0)\nprint(1)", "1\n"),
    "an awaited value": ("async def f():\n    return 7\nawait f()", "7\n"),
    "a check whether the file exists": (
        "import os\nprint(os.path.exists('data.csv'), os.path.isfile('x.xlsx'), os.path.exists('data.bin'))",
        "True True False\n",
    ),
    "a check by pathlib": (
        "from pathlib import Path\nprint(Path('a.csv').exists(), Path('b.md').exists())",
        "True False\n",
    ),
    "display by its module": ("from IPython.display import display, Markdown\ndisplay(Markdown('a'))", "a\n"),
    "a command of a notebook": ("get_ipython().run_line_magic('matplotlib', 'inline')\nprint(1)", "1\n"),
    "a sheet by a name": ("print(pd.read_excel('report.xlsx', sheet_name='Sales')['a'].sum())", "3\n"),
    "a sheet by position": ("print(pd.read_excel('report.xlsx', sheet_name=0)['a'].sum())", "3\n"),
    "JSON by pandas": ("print(pd.read_json('data.json')['a'].sum())", "3\n"),
    "JSON by its module": ("import json\nprint(json.load(open('data.json'))[1])", "{'a': 2, 'b': 'y'}\n"),
    "an installation by a process": (
        "from subprocess import run\nprint(run(['pip', 'install', '-q', 'pandas>=1'], check=True).returncode + 1)",
        "1\n",
    ),
    "an installation by the shell": ("import os\nprint(os.system('pip install pandas numpy'))", "0\n"),
    "the table in another encoding": ("print(pd.read_csv('zh.csv', encoding='gbk')['城市'][0])", "北京\n"),
    "a new name in another encoding": ("print(list(pd.read_csv('x.csv', encoding='gb18030').columns))", "['a', 'b']\n"),
}


@pytest.mark.parametrize(("program", "printed"), NOTEBOOK.values(), ids=NOTEBOOK)
def test_a_program_runs_as_in_a_notebook(tier_lab: Lab, program: str, printed: str) -> None:
    execution = tier_lab.run(program, TABLES | {"zh": TableFile("城市,数\n北京,1\n".encode())})
    assert (execution.stdout, execution.error) == (printed, None)


def test_a_table_in_gbk_is_read_in_its_own_encoding(tier_lab: Lab) -> None:
    tables = {"df": TableFile("城市,数\n北京,1\n".encode("gbk"))}
    for path in ("df.csv", "data.csv"):
        execution = tier_lab.run(f"print(pd.read_csv({path!r}, encoding='gbk')['城市'][0])", tables)
        assert (execution.stdout, execution.error) == ("北京\n", None)


@pytest.mark.parametrize("code", ["df", "pd.read_csv('df.csv')", "pd.read_csv('data.csv', encoding='utf-8')"])
def test_a_table_in_gbk_is_decoded_where_no_encoding_is_named(tier_lab: Lab, code: str) -> None:
    tables = {"df": TableFile("城市,人名\n北京,朱镕基\n".encode("gbk"))}
    execution = tier_lab.run(f"print(*{code}['城市'], *{code}['人名'])", tables)
    assert (execution.stdout, execution.error) == ("北京 朱镕基\n", None)


def test_a_table_that_the_program_has_changed_is_read_as_it_was(tier_lab: Lab) -> None:
    code = "df['a'] = 0\nprint(pd.read_json('x.json')['a'].sum(), pd.read_excel('y.xlsx')['a'].sum())"
    for table in (TABLES["df"], pd.DataFrame({"a": [1, 2]})):
        assert tier_lab.run(code, {"df": table}).stdout == "3 3\n"


def test_the_bytes_of_a_table_in_gbk_are_the_original_ones(tier_lab: Lab) -> None:
    content = "城市,数\n北京,1\n".encode("gbk")
    code = "print(open('df.csv', 'rb').read() == open('new.csv', mode='rb').read() == " + repr(content) + ")"
    assert tier_lab.run(code, {"df": TableFile(content)}).stdout == "True\n"


@pytest.mark.parametrize("content", ["a\nQuébec, Zürich\n".encode("latin-1"), "a\n北京".encode() + b"\xff\n"])
def test_a_table_with_invalid_bytes_is_not_taken_for_gbk(tier_lab: Lab, content: bytes) -> None:
    execution = tier_lab.run("print('\ufffd' in str(df))", {"df": TableFile(content)})
    assert (execution.stdout, execution.error) == ("True\n", None)


def test_no_more_made_up_files_exist_than_there_are_tables(tier_lab: Lab) -> None:
    program = "import os\nprint(*(os.path.exists(p) for p in ('in.csv', 'out.csv', 'in.csv', 'df.tsv')))"
    execution = tier_lab.run(program, {"df": TABLES["df"]})
    assert (execution.stdout, execution.error) == ("True False True True\n", None)


def test_an_installation_of_a_package_that_is_missing_fails(tier_lab: Lab) -> None:
    code = "import subprocess, sys\nsubprocess.check_call([sys.executable, '-m', 'pip', 'install', 'no-such-thing'])"
    assert "CalledProcessError" in (tier_lab.run(code).error or "")


def test_a_session_that_installs_packages_in_each_round_replaces_popen_once(lab: Lab) -> None:
    code = "import subprocess # pip\nprint(id(subprocess.Popen.__init__))"
    first, second = lab.rounds(code, code)
    assert first.stdout == second.stdout


def test_of_several_tables_each_made_up_path_gets_the_next(tier_lab: Lab) -> None:
    program = 'print(*(list(pd.read_csv(path)) for path in ("one.csv", "two.csv", "one.csv")))'
    assert tier_lab.run(program, TABLES).stdout == "['a', 'b'] ['c'] ['a', 'b']\n"


def test_a_table_is_read_by_its_own_name_whatever_else_was_read(tier_lab: Lab) -> None:
    assert tier_lab.run('print(list(pd.read_csv("/x/df2.csv")))', TABLES).stdout == "['c']\n"


@pytest.mark.parametrize(
    "program", ['open("/mnt/x.parquet")', 'open("/mnt/no/x.csv", "w")', 'open("/mnt/x.parquet", "rb")', "open(99)"]
)
def test_other_files_that_are_missing_stay_missing(tier_lab: Lab, program: str) -> None:
    error = tier_lab.run(program, TABLES).error
    assert error is not None
    assert error.split("\n")[-1].startswith(("FileNotFoundError", "OSError"))


def test_a_file_that_the_program_wrote_is_the_one_it_reads(tier_lab: Lab) -> None:
    program = 'df.head(1).to_csv("out.csv", index=False)\nprint(len(pd.read_csv("out.csv")))'
    assert tier_lab.run(program, TABLES).stdout == "1\n"


def test_the_last_expression_of_a_silent_program_is_its_output(tier_lab: Lab) -> None:
    assert tier_lab.run("x = 41\nx + 1").stdout == "42\n"
    assert tier_lab.run("df.a.sum()", TABLES).stdout == "3\n"


def test_the_last_expression_of_a_program_that_has_printed_is_not_shown(tier_lab: Lab) -> None:
    assert tier_lab.run('print("a")\n42').stdout == "a\n"


def test_a_session_shows_the_last_expression_of_each_round_as_a_notebook_does(tier_lab: Lab) -> None:
    rounds = tier_lab.rounds("x = 5\nx", 'print("p")\nx * 2', "x = 1", "None")
    assert [execution.stdout for execution in rounds] == ["5\n", "p\n10\n", "", ""]


def test_after_a_time_out_a_model_is_told_that_its_variables_are_gone(tier_lab: Lab) -> None:
    stopped, after = tier_lab.rounds("x = 1\nwhile True: pass", "x", timeout=(1, 20))
    assert stopped.variables_lost
    assert not after.variables_lost
    assert "NameError" in (after.error or "")
    assert "all variables but the tables" in format_result(stopped, 1)
    assert "all variables" not in format_result(after, 1)


def test_a_module_that_cannot_be_loaded_beforehand_leaves_nothing_behind(new_lab: Callable[..., Lab]) -> None:
    lab = new_lab(preload=("this_module_is_nowhere", "xml.dom.nothing"))
    assert lab.run('import sys\nprint("xml.dom" in sys.modules)').stdout == "False\n"


def test_evalsuite_itself_is_hidden_where_it_lies_among_what_programs_see() -> None:
    package = tiers.INSIDE.parents[1]
    assert tiers._list_hiding_arguments([str(package.parent)]) == [
        "--tmpfs",
        str(package),
        "--remount-ro",
        str(package),
    ]
    assert tiers._list_hiding_arguments(["/usr/share/zoneinfo"]) == []
