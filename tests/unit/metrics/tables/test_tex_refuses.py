"""LaTeX that TeX refuses loses half of its form, and the score agrees with TeX itself about what it refuses."""

from __future__ import annotations

import json
import random
import re
import shutil
import subprocess
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

import evalsuite
from evalsuite.metrics.tables import read_tables, table_score

if TYPE_CHECKING:
    from collections.abc import Iterator

TABLE = r"""\begin{tabular}{lrr}
\hline
Name & Wins & Losses \\
\hline
Otters & 12 & 4 \\
Herons & $x_1$ & 0.52 \\
\hline
\end{tabular}"""
ITEMS = Path(evalsuite.__file__).parent / "benchmarks/struc_bench/data/latex_test.json"
REFERENCES = [item["output"] for item in json.loads(ITEMS.read_text("utf-8"))]
PACKAGES = ("booktabs", "array", "graphicx", "amsmath", "amssymb", "longtable", "tabularx")
ROW_END = re.compile(r"\\\\(?=\s*\n[^\\\n]*&)")


def write_mistakes(table: str, seed: int) -> Iterator[tuple[str, str]]:
    ends = list(ROW_END.finditer(table))
    if ends:
        end = random.Random(seed).choice(ends)
        yield "a row without an end", table[: end.start()] + table[end.end() :]
    yield "an environment without an end", table[: table.rfind("\\end{tabular")]
    yield "an unknown column", re.sub(r"(\\begin\{tabular\}\{\|?)[lcr]", r"\1k", table)
    for inserted in (r"\(", r"\unknwn ", "a_b ", "$ ", "{ ", "} ", "& & & & & & & ", "# ", r"\hline "):
        yield f"{inserted} within a row", table.replace(" & ", f" & {inserted}", 1)
    yield "no mistake", table.replace(" & ", r" & 5\% and {\bf more} ", 1) if "\\multi" not in table else table


@pytest.mark.parametrize(("mistake", "changed"), [*write_mistakes(TABLE, 0)])
def test_latex_that_tex_refuses_loses_half_of_its_form(mistake: str, changed: str) -> None:
    score = table_score(changed, TABLE)
    compiles = next(fact.fulfilled for fact in score.facts if fact.name == "compiles")
    assert compiles == (mistake == "no mistake")
    share = sum(fact.fulfilled for fact in score.facts) / len(score.facts)
    assert score.form == pytest.approx(share if compiles else share / 2)


def test_a_row_without_an_end_is_read_as_a_row() -> None:
    changed = TABLE.replace("4 \\\\", "4")
    assert table_score(changed, TABLE).content == 1.0
    assert table_score(changed, TABLE).value < 0.9
    broken_line = TABLE.replace("12 & 4", "12 & 4\n and more")
    assert len(read_tables(broken_line, "latex")[0].rows) == 3


def test_macros_and_columns_that_the_reference_uses_or_the_answer_defines_are_known() -> None:
    wanted = TABLE.replace("{lrr}", "{lrk}").replace("Otters", r"\ours Otters")
    assert table_score(wanted, wanted).value == 1.0
    defined = "\\newcolumntype{k}{r}\\newcommand{\\better}{}" + TABLE.replace("{lrr}", "{lrk}").replace(
        "12", "12\\better"
    )
    answer = rf"\begin{{table}}{defined}\end{{table}}"
    assert {fact.name: fact.fulfilled for fact in table_score(answer, TABLE).facts}["compiles"]


@pytest.mark.skipif(shutil.which("pdflatex") is None, reason="pdflatex is not installed")
@pytest.mark.parametrize("place", range(0, len(REFERENCES), 3))
def test_tex_refuses_what_the_form_says(place: int, tmp_path: Path) -> None:
    if not _tex_accepts(REFERENCES[place], tmp_path):
        pytest.skip("the reference needs packages that are not installed")
    for mistake, changed in write_mistakes(REFERENCES[place], place):
        facts = {fact.name: fact.fulfilled for fact in table_score(changed, REFERENCES[place], format="latex").facts}
        assert facts["compiles"] == _tex_accepts(changed, tmp_path), (mistake, changed)


def _tex_accepts(body: str, folder: Path) -> bool:
    preamble = "\\documentclass{article}\\usepackage{" + ",".join(PACKAGES) + "}"
    (folder / "table.tex").write_text(f"{preamble}\\begin{{document}}\n{body}\n\\end{{document}}\n", "utf-8")
    command = ["pdflatex", "-no-shell-escape", "-halt-on-error", "-interaction=nonstopmode", "table.tex"]
    return subprocess.run(command, cwd=folder, capture_output=True, check=False).returncode == 0
