"""Check with pdflatex, in the sandbox, whether LaTeX that a model wrote compiles."""

from __future__ import annotations

import shutil
from dataclasses import dataclass, field, replace
from itertools import takewhile
from pathlib import Path

from evalsuite.core.errors import SandboxUnavailable
from evalsuite.sandbox.environments import own_environment
from evalsuite.sandbox.sandbox import Sandbox

ABSENT = "pdflatex is not installed where these cases were scored: on Debian, apt-get install texlive-latex-recommended"
FOLDERS = ("/usr/bin", "/usr/share/texlive", "/usr/share/texmf", "/var/lib/texmf", "/etc/texmf")
"""The folders of TeX Live as Debian installs it."""
PACKAGES = (
    *("booktabs", "array", "amsmath", "amssymb", "graphicx", "multirow", "longtable", "tabularx", "makecell"),
    *("xcolor", "colortbl", "hhline", "siunitx", "tabularray", "threeparttable", "dcolumn", "diagbox", "tabulary"),
)
CLASS = "\\documentclass"
LOAD = "".join(rf"\IfFileExists{{{name}.sty}}{{\usepackage{{{name}}}}}{{}}" for name in PACKAGES)
PROGRAM = """
import subprocess
from pathlib import Path
Path("table.tex").write_bytes({text!r})
command = [{tex!r}, "-no-shell-escape", "-halt-on-error", "-interaction=nonstopmode", "table.tex"]
quiet = dict.fromkeys(("stdin", "stdout", "stderr"), subprocess.DEVNULL)
print(subprocess.run(command, **quiet).returncode)
"""


@dataclass(slots=True)
class TexCheck:
    """Checks LaTeX by compiling it; one instance compiles each reference once.

    Attributes:
        absent: the reason why LaTeX cannot be compiled on this machine; empty if compiling is possible.
    """

    absent: str = ""
    _sandbox: Sandbox | None = None
    _known: dict[str, bool] = field(default_factory=dict)

    async def compare(self, table: str, reference: str, answer: str = "") -> bool | None:
        """Tell whether TeX accepts a non-empty table, together with the definitions before the table in the answer.

        Returns:
            None if TeX also refuses the reference, or if LaTeX cannot be compiled on this machine.
        """
        if reference not in self._known and (accepted := await self._accepts(reference)) is not None:
            self._known[reference] = accepted
        if not self._known.get(reference):
            return None
        return bool(table) and await self._accepts(table, _find_definitions(answer, table))

    async def _accepts(self, latex: str, definitions: str = "") -> bool | None:
        tex = shutil.which("pdflatex")
        if tex is None:
            self.absent = ABSENT
            return None
        if self._sandbox is None:
            self._sandbox = _make_sandbox(Path(tex))
        text = _complete(latex, definitions).encode("utf-8", "replace")
        try:
            end = await self._sandbox.run(PROGRAM.format(text=text, tex=tex))
        except SandboxUnavailable as error:
            self.absent = f"TeX runs only in a sandbox: {error}"
            return None
        return end.stdout.strip() == "0"

    async def aclose(self) -> None:
        """End the sandbox."""
        if self._sandbox is not None:
            await self._sandbox.aclose()


def _make_sandbox(tex: Path) -> Sandbox:
    """Make a sandbox whose programs can also read TeX's files."""
    own, root = own_environment(), tex.resolve().parents[2]
    # TeX Live's own installer puts everything into one folder, three levels above the program.
    folders = (*filter(Path.is_dir, map(Path, FOLDERS)), *([root] if root != Path("/") else []))
    visible = replace(own, packages=(*own.packages, *map(str, folders)))
    return Sandbox(preload=(), environment=visible, tiers=("bubblewrap", "landlock"))


def _find_definitions(answer: str, latex: str) -> str:
    """Find the definitions before the table: the document's preamble, or else the command lines directly above it."""
    before = answer.rpartition(latex)[0]
    if CLASS in before:
        return before[before.rindex(CLASS) :]
    lines = takewhile(lambda line: line.lstrip().startswith("\\") or not line.strip(), reversed(before.splitlines()))
    return "\n".join(reversed(list(lines)))


def _complete(latex: str, definitions: str) -> str:
    head = "" if CLASS in definitions else f"{CLASS}{{article}}{LOAD}\n"
    body = latex if "\\begin{document}" in latex else f"\\begin{{document}}\n{latex}\n\\end{{document}}"
    return f"{head}{definitions}\n{body}\n"
