"""What programs may import: the project's own packages, or an environment that uv builds once."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from evalsuite.core.errors import SandboxUnavailable, SettingsError
from evalsuite.sandbox.environments import NAMED, get_own_environment, provide_environment
from tests.wheels import needs_uv, write_wheel

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

Lab = Any


@pytest.fixture
def requirements(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[[str], str]:
    """Writes a file of requirements; the environments built from it are kept in the test's folder."""
    monkeypatch.setenv("EVALSUITE_CACHE", str(tmp_path / "cache"))

    def write(text: str) -> str:
        path = tmp_path / "programs.txt"
        path.write_text(text, encoding="utf-8")
        return str(path)

    return write


@needs_uv
def test_an_environment_is_built_once_and_holds_its_packages_alone(
    requirements: Callable[[str], str], tmp_path: Path, new_lab: Callable[..., Lab]
) -> None:
    name, messages = requirements(f"# one package\n{write_wheel(tmp_path)}\n"), list[str]()
    built = provide_environment(name, messages.append)
    again = provide_environment(name, messages.append)
    assert len(messages) == 1
    assert (built.installed, built.fingerprint) == ({"ruler": "1.0"}, again.fingerprint)
    lab = new_lab(environment=built)
    assert lab.run("import ruler; print(ruler.LENGTH)").stdout == "1.0\n"
    assert lab.run("import numpy").error.endswith("ModuleNotFoundError: No module named 'numpy'")


@needs_uv
def test_other_versions_make_another_environment(requirements: Callable[[str], str], tmp_path: Path) -> None:
    first = provide_environment(requirements(str(write_wheel(tmp_path))))
    second = provide_environment(requirements(str(write_wheel(tmp_path, "2.0"))))
    assert first.packages != second.packages
    assert first.fingerprint != second.fingerprint


@needs_uv
def test_what_cannot_be_built_leaves_nothing_behind_and_says_why(
    requirements: Callable[[str], str], tmp_path: Path
) -> None:
    name = requirements("./no-such-package-1.0-py3-none-any.whl\n")
    with pytest.raises(SandboxUnavailable, match=r"(?s)uv pip install failed.*no-such-package"):
        provide_environment(name)
    assert [path.name for path in (tmp_path / "cache" / "environments").iterdir() if path.is_dir()] == []


def test_without_uv_the_message_says_what_to_install(
    requirements: Callable[[str], str], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(SandboxUnavailable, match="pip install uv"):
        provide_environment(requirements("pandas==2.2.3\n"))


def test_an_unknown_name_lists_what_there_is() -> None:
    with pytest.raises(SettingsError, match=r"own, treb-2025.*requirements"):
        provide_environment("treb-1999")


def test_the_released_environment_is_pinned_throughout() -> None:
    assert all("==" in requirement for requirement in NAMED["treb-2025"])
    assert "pandas==2.2.3" in NAMED["treb-2025"]


def test_a_prompt_can_name_the_versions_that_programs_find(lab: Lab) -> None:
    pandas = get_own_environment().installed["pandas"]
    assert f"pandas {pandas}" in get_own_environment().description
    assert lab.run("print(pd.__version__)").stdout == f"{pandas}\n"


def test_a_frame_reaches_an_environment_with_another_pandas_as_text(
    requirements: Callable[[str], str], tmp_path: Path, new_lab: Callable[..., Lab]
) -> None:
    pd = pytest.importorskip("pandas", reason="pip install 'evalsuite[sandbox]'")
    own = get_own_environment()
    # As if its pandas were another version: the folder is that of this environment, the name is not.
    other = type(own)("other", own.interpreter, own.packages, own.installed)
    lab = new_lab(environment=other, preload=("pandas",))
    assert lab.run("print(df.a.sum())", {"df": pd.DataFrame({"a": [1, 2]})}).stdout == "3\n"


def test_a_heavy_package_is_loaded_once_for_all_programs_that_mention_it(tier_lab: Lab) -> None:
    pytest.importorskip("matplotlib", reason="pip install 'evalsuite[plots]'")
    draw = "import matplotlib.pyplot as plt; plt.plot([1, 2]); plt.savefig('a.png')"
    assert tier_lab.run(draw).error is None
    seen = tier_lab.run("import sys; print('matplotlib.pyplot' in sys.modules)")
    assert (seen.stdout, seen.error) == ("True\n", None)
    # What packages wrote while they were imported is gone, and was never any program's to change.
    left = tier_lab.run(
        "import os, matplotlib\n"
        "for folder in ('/sandbox/loading', matplotlib.get_configdir()):\n"
        "    try: print(os.listdir(folder))\n"
        "    except OSError: print([])\n"
        "    try: open(f'{folder}/mine', 'w')\n"
        "    except OSError: print('closed')\n"
    )
    assert left.stdout == "[]\nclosed\n" * 2
