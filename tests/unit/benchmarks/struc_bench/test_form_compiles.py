"""pdflatex decides `form_compiles`, in the sandbox; a reason stands in its place where there is no pdflatex."""

from __future__ import annotations

import asyncio
import shutil
from typing import TYPE_CHECKING, Any

import pytest

from evalsuite.benchmarks.struc_bench.scoring import ABSENT, COMPILES, TableScorer
from evalsuite.core.errors import SandboxUnavailable
from evalsuite.core.types import Sample, Score, Transcript
from evalsuite.results.tally import UNMEASURED
from evalsuite.sandbox import sandbox

if TYPE_CHECKING:
    from pathlib import Path

WANTED = "\\begin{tabular}{lr}\nName & Wins \\\\\nOtters & 12 \\\\\n\\end{tabular}"
needs_tex = pytest.mark.skipif(shutil.which("pdflatex") is None, reason="pdflatex is not installed")


def score(answer: str, wanted: str = WANTED) -> tuple[Any, Any]:
    async def ask() -> tuple[Any, Any]:
        scorer = TableScorer()
        sample = Sample(id="1", input="", target=wanted, metadata={"text": ""}, tags={"format": "latex"})
        scores = await scorer(sample, Transcript(answer))
        await scorer.aclose()
        form = scores["table_form"]
        assert isinstance(form, Score)
        return scores.get(COMPILES), form.facts.get(UNMEASURED, {}).get(COMPILES)

    return asyncio.run(ask())


@needs_tex
@pytest.mark.parametrize(
    ("answer", "accepted"),
    [
        (f"Here it is:\n```latex\n{WANTED}\n```", 1.0),
        (f"\\documentclass{{article}}\n\\begin{{document}}\n{WANTED}\n\\end{{document}}\nThat is all.", 1.0),
        ("See:\n\\newcommand{\\better}{*}\n\n" + WANTED.replace("12", r"12\better"), 1.0),
        (WANTED.replace("12 \\\\", "12").replace("Wins \\\\", "Wins"), 0.0),
        (WANTED.replace("\\end{tabular}", ""), 0.0),
        (WANTED.replace("12", r"\(12"), 0.0),
        (WANTED.replace("{lr}", "{lk}"), 0.0),
        (WANTED.replace("12", r"\unknwn 12"), 0.0),
        (WANTED.replace("12", r"\input{/etc/passwd}"), 0.0),
        ("| Name | Wins |\n|---|---|\n| Otters | 12 |", 0.0),
        ("I cannot say.", 0.0),
        ("", 0.0),
    ],
)
def test_latex_compiles_if_pdflatex_accepts_it(answer: str, accepted: float) -> None:
    assert score(answer) == (accepted, None)


@needs_tex
def test_nothing_is_measured_if_tex_refuses_the_reference() -> None:
    wanted = WANTED.replace("Otters", r"\team{Otters}")
    assert score(wanted, wanted) == (None, None)


def test_a_reason_stands_in_place_of_the_score_without_pdflatex(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    assert score(WANTED) == (None, ABSENT)


@needs_tex
def test_a_reason_stands_in_place_of_the_score_without_a_sandbox(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_: object) -> None:
        raise SandboxUnavailable("there is none here")

    monkeypatch.setattr(sandbox, "list_launches", refuse)
    assert score(WANTED) == (None, "TeX runs only in a sandbox: there is none here")
