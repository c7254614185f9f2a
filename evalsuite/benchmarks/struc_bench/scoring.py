"""Score an answer: table score, H-Score, text metrics, types of errors, abilities, P-Score."""

import shutil
from collections.abc import Mapping, Sequence
from dataclasses import replace
from itertools import takewhile
from pathlib import Path
from typing import Any, cast

from evalsuite.benchmarks.struc_bench.abilities import (
    SIZE_FACTS,
    TableComparison,
    find_table_differences,
    flag_error_types,
    measure_abilities,
)
from evalsuite.benchmarks.struc_bench.items import NEURAL, StrucBenchOptions
from evalsuite.benchmarks.struc_bench.p_score import PROMPT, request_p_score
from evalsuite.core.errors import JudgeError, SandboxUnavailable, ScoringError, shorten_line
from evalsuite.core.protocols import JudgedScorer, Model, NamedScores, Scorer, Setup, Solver
from evalsuite.core.types import Sample, Score, Transcript
from evalsuite.metrics.tables import Format, TableScore, h_score, read_tables, strip_answer, table_score
from evalsuite.metrics.text import bleu, load_sacrebleu, rouge_l
from evalsuite.results.tally import UNMEASURED, Estimate, Tally
from evalsuite.sandbox.environments import get_own_environment
from evalsuite.sandbox.sandbox import Sandbox
from evalsuite.solvers.single_call import generate

FACT = "bleu"


def count_bleu_matches(prediction: str, reference: str) -> dict[str, Any]:
    """Count matching n-grams and all n-grams (n from 1 to 4), and both texts' lengths, in sacrebleu's tokens."""
    score = load_sacrebleu().corpus_score([prediction], [[reference]])
    return {"matched": list(score.counts), "all": list(score.totals), "lengths": [score.sys_len, score.ref_len]}


def compute_corpus_bleu(tally: Tally) -> Estimate | None:
    """Compute SacreBLEU in [0, 1] (the usual value divided by 100) over all scored cases; None if no case is scored."""
    counts = [row.facts[FACT] for row in tally.scored("bleu") if FACT in row.facts]
    if not counts:
        return None
    matched, every, (predicted, wanted) = (
        [sum(column) for column in zip(*(count[name] for count in counts), strict=True)]
        for name in ("matched", "all", "lengths")
    )
    score = load_sacrebleu().compute_bleu(matched, every, predicted, wanted, smooth_method="exp").score
    # sacrebleu sums logarithms, so rounding puts a perfect match slightly above 100.
    return Estimate(min(1.0, score / 100), n=len(counts))


COMPILES = "form_compiles"  # Score: 1 if pdflatex accepts the output; only for LaTeX items whose reference compiles.
FORM = "form"  # Key in `facts`: the result of each check of layout and markup.
CELLS = "cells"  # Key in `facts`: numbers of wanted and wrong cells, see `_count_wrong_cells`.
ROW_KINDS = ("head", "first row", "middle rows", "last row")
LONGEST_NAME = 24  # Maximum characters of a column's name in `facts[CELLS]`.
MOST_NAMED = 3  # Maximum differing cells in a case's note.
LONGEST_CELL = 80  # Maximum characters of a differing cell in a case's note.


def make_solver(setup: Setup) -> Solver:
    """Make the solver; all modes share one solver, because modes differ only in the question."""
    options = StrucBenchOptions.from_setup(setup)

    async def ask_model(sample: Sample, model: Model) -> Transcript:
        # Allow 1.5 times the tokens that the wanted table probably has, at 2.5 characters per token.
        room = 32 + int(1.5 * len(str(sample.target)) / 2.5)
        limit = options.max_tokens or max(options.least_tokens, room)
        return await generate(max_tokens=limit, temperature=options.temperature)(sample, model)

    return ask_model


def make_scorers(setup: Setup) -> Sequence[Scorer | JudgedScorer]:
    """Make the scorers of an answer; the P-Score is included only if the run has a judge."""
    options = StrucBenchOptions.from_setup(setup)
    chosen: list[Scorer | JudgedScorer] = [cast("Scorer", TableScorer(row_order=options.row_order))]
    if any(getattr(options, name) for name in NEURAL):
        chosen.append(NeuralScorer(options))
    return [*chosen, PScorer(options.p_prompt or PROMPT)] if setup.judge else chosen


class TableScorer:
    """Computes the scores that need no model; compiles LaTeX in a sandbox, each reference only once."""

    def __init__(self, *, row_order: bool = True) -> None:
        self._row_order = row_order
        self._absent = ""  # The reason why LaTeX cannot be compiled on this machine; empty if compiling is possible.
        self._sandbox: Sandbox | None = None
        self._accepted_references: dict[str, bool] = {}

    async def __call__(self, sample: Sample, transcript: Transcript) -> NamedScores:
        reference, text = str(sample.target), transcript.answer
        score = table_score(text, reference, format=_get_sample_format(sample), row_order=self._row_order)
        if score.match.wanted.markup != "latex":
            return score_table(sample, text, score)
        predicted = score.match.predicted
        is_table = predicted.markup == "latex" and bool(predicted.tables)
        accepted = await self._accepts_table(predicted.text if is_table else "", reference, text)
        compiled = {} if accepted is None else {COMPILES: float(accepted)}
        unmeasured = {UNMEASURED: {COMPILES: self._absent}} if self._absent else {}
        return {**score_table(sample, text, score, unmeasured), **compiled}

    async def _accepts_table(self, table: str, reference: str, answer: str) -> bool | None:
        """Tell whether a table is nonempty and TeX accepts it with the definitions that precede it in the answer.

        The result is None if TeX also refuses the reference, or if LaTeX cannot be compiled on this machine.
        """
        known = self._accepted_references
        if reference not in known and (accepted := await self._is_compilable(reference)) is not None:
            known[reference] = accepted
        if not known.get(reference):
            return None
        return bool(table) and await self._is_compilable(table, _find_definitions(answer, table))

    async def _is_compilable(self, latex: str, definitions: str = "") -> bool | None:
        tex = shutil.which("pdflatex")
        if tex is None:
            self._absent = ABSENT
            return None
        if self._sandbox is None:
            self._sandbox = _make_sandbox(Path(tex))
        head = "" if DOCUMENT_CLASS in definitions else f"{DOCUMENT_CLASS}{{article}}{PACKAGES_IF_INSTALLED}\n"
        body = latex if "\\begin{document}" in latex else f"\\begin{{document}}\n{latex}\n\\end{{document}}"
        text = f"{head}{definitions}\n{body}\n".encode("utf-8", "replace")
        try:
            end = await self._sandbox.run(TEX_PROGRAM.format(text=text, tex=tex))
        except SandboxUnavailable as error:
            self._absent = f"TeX runs only in a sandbox: {error}"
            return None
        return end.stdout.strip() == "0"

    async def aclose(self) -> None:
        if self._sandbox is not None:
            await self._sandbox.aclose()


ABSENT = "pdflatex is not installed where these cases were scored: on Debian, apt-get install texlive-latex-recommended"
TEX_FOLDERS = ("/usr/bin", "/usr/share/texlive", "/usr/share/texmf", "/var/lib/texmf", "/etc/texmf")
"""The folders of Debian's TeX Live packages."""
TEX_PACKAGES = (
    *("booktabs", "array", "amsmath", "amssymb", "graphicx", "multirow", "longtable", "tabularx", "makecell"),
    *("xcolor", "colortbl", "hhline", "siunitx", "tabularray", "threeparttable", "dcolumn", "diagbox", "tabulary"),
)
DOCUMENT_CLASS = "\\documentclass"
PACKAGES_IF_INSTALLED = "".join(rf"\IfFileExists{{{name}.sty}}{{\usepackage{{{name}}}}}{{}}" for name in TEX_PACKAGES)
TEX_PROGRAM = """
import subprocess
from pathlib import Path
Path("table.tex").write_bytes({text!r})
command = [{tex!r}, "-no-shell-escape", "-halt-on-error", "-interaction=nonstopmode", "table.tex"]
quiet = dict.fromkeys(("stdin", "stdout", "stderr"), subprocess.DEVNULL)
print(subprocess.run(command, **quiet).returncode)
"""


def _make_sandbox(tex: Path) -> Sandbox:
    """Make a sandbox whose programs can also read TeX's files."""
    own, root = get_own_environment(), tex.resolve().parents[2]
    # TeX Live's own installer puts everything into one folder, three levels above the program.
    folders = (*filter(Path.is_dir, map(Path, TEX_FOLDERS)), *([root] if root != Path("/") else []))
    visible = replace(own, packages=(*own.packages, *map(str, folders)))
    return Sandbox(preload=(), environment=visible, tiers=("bubblewrap", "landlock"))


def _find_definitions(answer: str, latex: str) -> str:
    """Find the definitions before a table: the document's preamble, or else the commands directly above the table."""
    before = answer.rpartition(latex)[0]
    if DOCUMENT_CLASS in before:
        return before[before.rindex(DOCUMENT_CLASS) :]
    lines = takewhile(lambda line: line.lstrip().startswith("\\") or not line.strip(), reversed(before.splitlines()))
    return "\n".join(reversed(list(lines)))


def score_table(
    sample: Sample, text: str, score: TableScore, form_facts: Mapping[str, Any] | None = None
) -> NamedScores:
    """Compute the scores that only need text; the score `table_form` also stores `form_facts` in its facts."""
    written, reference = _get_sample_format(sample), str(sample.target)
    answer = strip_answer(text, written)
    wanted = read_tables(reference, written)
    # A reference without a table (for example a list) gives an empty comparison.
    comparison = find_table_differences(score.match.content, score.match.wanted.tables) if wanted else TableComparison()
    predicted = score.match.predicted
    sizes = [[len(table.rows), table.width] for table in wanted]
    shape = {"sizes": sizes, "names": [table.name for table in wanted], "words": len(sample.metadata["text"].split())}
    people = {"people": sample.metadata["people"]} if "people" in sample.metadata else {}
    checklist = [[fact.name, fact.text, fact.fulfilled] for fact in score.facts]
    about_markup = [fact.fulfilled for fact in score.facts if fact.name not in SIZE_FACTS]
    share = min(1.0, len(predicted.text) / len(text.strip())) if predicted.tables else 0.0
    return {
        "table_score": Score(score.value, log=[{"signature": score.signature, **score.parts}]),
        "table_content": Score(
            score.content, _describe_differences(score), facts={**shape, CELLS: _count_wrong_cells(score), **people}
        ),
        "table_form": Score(score.form, facts={FORM: checklist, **(form_facts or {})}),
        **_compute_released_scores(answer, reference, written),
        "bleu": Score(bleu(answer, reference), facts={FACT: count_bleu_matches(answer, reference)}),
        "rouge_l": rouge_l(answer, reference),
        "rouge_l_unstemmed": rouge_l(answer, reference, stem=False),
        **flag_error_types(comparison, score.facts),
        **measure_abilities(
            comparison,
            source=sample.metadata["text"],
            form_share=score.form,
            markup_share=sum(about_markup) / len(about_markup),
            table_share=share,
        ),
    }


def _count_wrong_cells(score: TableScore) -> list[list[Any]]:
    """Count, for each kind of row and column name, the nonempty wanted cells and those of them that are wrong."""
    counts: dict[tuple[str, str], list[int]] = {}
    for rows in score.compared:
        wanted = [row for row in rows if any(cell.state != "surplus" for cell in row)]
        for place, row in enumerate(wanted):
            kind = ROW_KINDS[place if place < 2 else 3 if place == len(wanted) - 1 else 2]
            for cell in row:
                if cell.wanted.strip():
                    count = counts.setdefault((kind, shorten_line(cell.column, LONGEST_NAME)), [0, 0])
                    count[0] += 1
                    count[1] += cell.state != "equal"
    return [[*key, *count] for key, count in counts.items()]


def _describe_differences(score: TableScore) -> str:
    """Name the first differing cells in one line, such as `Gulls / Wins: 7, not 8`."""
    differences = score.differences
    named = "; ".join(shorten_line(str(cell), LONGEST_CELL) for cell in differences[:MOST_NAMED])
    return named + (f"; and {more:,} more" if (more := len(differences) - MOST_NAMED) > 0 else "")


def _get_sample_format(sample: Sample) -> Format:
    return cast("Format", sample.tags["format"])


def _compute_released_scores(answer: str, reference: str, syntax: Format) -> NamedScores:
    """Compute the published H-Score; return no score for markup that the published scripts cannot score."""
    try:
        score = h_score(answer, reference, format=syntax)
    except ScoringError:
        return {}
    return {
        "h_content_released": Score(score.content, log=[{"variant": "released", **score.parts}]),
        "h_format_released": score.format,
    }


class NeuralScorer:
    """Scores by the neural metrics whose models the user named; each model is loaded at its first use."""

    def __init__(self, options: StrucBenchOptions) -> None:
        self._options = options
        self._loaded: dict[str, Any] = {}

    def __call__(self, sample: Sample, transcript: Transcript) -> NamedScores:
        answer = strip_answer(transcript.answer, _get_sample_format(sample))
        scores = {}
        for name in NEURAL:
            if folder := getattr(self._options, name):
                if name not in self._loaded:
                    self._loaded[name] = self._load_neural_metric(name, Path(folder))
                score = self._loaded[name].score(answer, str(sample.target))
                scores[name] = float(score.f1 if name == "bertscore" else score)
        return scores

    def _load_neural_metric(self, name: str, folder: Path) -> Any:
        from evalsuite.metrics.neural import BartScore, BertScore, Bleurt

        if name == "bertscore":
            baseline = self._options.bertscore_baseline
            return BertScore(folder, layer=self._options.bertscore_layer, baseline=Path(baseline) if baseline else None)
        return (BartScore if name == "bartscore" else Bleurt)(folder)


class PScorer:
    """Scores by the paper's P-Score."""

    def __init__(self, prompt: str) -> None:
        self._prompt = prompt

    async def judged(self, sample: Sample, transcript: Transcript, judge: Model) -> NamedScores:
        """Score one transcript; if the judgement cannot be read, only the P-Score is missing."""
        answer, written = strip_answer(transcript.answer, _get_sample_format(sample)), _get_sample_format(sample)
        try:
            scores = await request_p_score(judge, answer, str(sample.target), format=written, prompt=self._prompt)
        except JudgeError as error:
            return {"p_readable": Score(0.0, log=[*error.log, {"error": str(error)}])}
        return {**scores, "p_readable": 1.0}
