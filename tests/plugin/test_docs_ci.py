"""The page docs/ci.md: its commands, typed in order in an empty folder, do what the page shows."""

from __future__ import annotations

import os
import re
import subprocess
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import pytest

    from tests.warm_python import WarmPython

PAGE = (Path(__file__).parents[2] / "docs" / "ci.md").read_text("utf-8")
FIVE_IDEAS = PAGE[PAGE.index("\n## 1. ") : PAGE.index("\n## Workflows")]

APP = """
def cannot_count_to(*digits):
    def model(messages):
        first, second = messages[-1]["content"].split("+")
        return "?" if first[-1] in digits else str(int(first) + int(second))
    return model

weak, bad = cannot_count_to("3", "7"), cannot_count_to(*"1234567")
"""


def type_command(line: str, model: str = "weak") -> tuple[int, str]:
    """Types one line into a shell, with a function for the page's models, whose prices are known."""
    function = f"function:app:{model}"
    line = re.sub(r"--model=gpt-\d", f"--model={function} --price={function}=0/0", line)
    ended = subprocess.run(line, shell=True, capture_output=True, text=True, check=False, timeout=300)
    return ended.returncode, ended.stdout + ended.stderr


def test_the_commands_typed_in_order_do_what_the_page_shows(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, warm_python: WarmPython
) -> None:
    commands, folder = tmp_path / "bin", tmp_path / "folder"
    folder.mkdir()
    monkeypatch.chdir(folder)
    variables = {"PATH": f"{commands}:{os.environ['PATH']}", "PYTHONPATH": str(folder)}
    for name, value in (variables | warm_python.write_commands(commands)).items():
        monkeypatch.setenv(name, value)
    for name in ("GITHUB_ACTIONS", "GITHUB_OUTPUT", "GITHUB_STEP_SUMMARY"):
        monkeypatch.delenv(name, raising=False)
    Path("app.py").write_text(APP, "utf-8")
    status, told, shown = 0, "", 0
    for kind, text in re.findall(r"^```(\w+)\n(.*?)^```$", FIVE_IDEAS, re.DOTALL | re.MULTILINE):
        if kind == "text":
            for line in text.splitlines():
                assert line.strip() in told
            assert f"(exit status {status})" in text
            status, shown = 0, shown + 1
            continue
        assert status == 0, f"the page does not show why a command ends with {status}: {told}"
        if kind == "python":
            Path("cases/test_sums.py").write_text(text, "utf-8")
        elif kind == "toml":
            Path("pyproject.toml").write_text(text, "utf-8")
        else:
            told = ""
            for line in text.splitlines():
                ended, output = type_command(line)
                status, told = status or ended, told + output
    assert status == 0
    assert shown == 3
    lost, told = type_command("pytest cases/ --model=gpt-5 --gate='exact_match no worse than kept/main by 0.05'", "bad")
    assert lost == 10
    assert re.search(r"missed  exact_match no worse than kept/main by 0.05   sums.exact_match: -0.5", told)
    assert type_command("pytest cases/ --model=gpt-4 -k 7-1")[0] == 12
