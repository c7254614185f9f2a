"""Score an answer: table score, H-Score, text metrics, types of errors, abilities, P-Score."""

from __future__ import annotations

from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

from evalsuite.benchmarks.struc_bench.abilities import TableComparison, abilities, compare, error_types, markup_used
from evalsuite.benchmarks.struc_bench.items import NEURAL, StrucBenchOptions
from evalsuite.benchmarks.struc_bench.p_score import PROMPT, p_score
from evalsuite.core.errors import JudgeError, ScoringError
from evalsuite.core.phrases import ends_of_line
from evalsuite.core.types import Score
from evalsuite.judges.judgements import sign_scores
from evalsuite.metrics.tables import h_score, read_tables, strip_answer, table_score
from evalsuite.metrics.text import bleu, rouge_l
from evalsuite.results.tally import Estimate
from evalsuite.solvers.single_call import generate

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from evalsuite.core.protocols import JudgedScorer, Model, NamedScores, Scorer, Setup, Solver
    from evalsuite.core.types import Sample, Transcript
    from evalsuite.metrics.tables import Format, TableScore
    from evalsuite.results.tally import Tally


FACT = "bleu"


def bleu_counts(prediction: str, reference: str) -> dict[str, Any]:
    """Count matching and all n-grams of order 1 to 4, and both texts' lengths, in sacrebleu's tokens."""
    score = _load_bleu().corpus_score([prediction], [[reference]])
    return {"matched": list(score.counts), "all": list(score.totals), "lengths": [score.sys_len, score.ref_len]}


def corpus_bleu(tally: Tally) -> Estimate | None:
    """Compute SacreBLEU in [0, 1] (the usual value divided by 100) over all scored cases; None if no case is scored."""
    counts = [row.facts[FACT] for row in tally.scored("bleu") if FACT in row.facts]
    if not counts:
        return None
    matched, every, (predicted, wanted) = (
        [sum(column) for column in zip(*(count[name] for count in counts), strict=True)]
        for name in ("matched", "all", "lengths")
    )
    score = _load_bleu().compute_bleu(matched, every, predicted, wanted, smooth_method="exp").score
    # sacrebleu sums logarithms, so rounding puts a perfect match slightly above 100.
    return Estimate(min(1.0, score / 100), n=len(counts))


@cache
def _load_bleu() -> Any:
    from sacrebleu.metrics.bleu import BLEU

    return BLEU()


TABLE_SCORE = {"table_score": "Table score", "table_content": "Content", "table_form": "Form"}
"""The table score, which is the main metric, and its two parts."""
METRICS = {
    "bleu": "SacreBLEU",
    "rouge_l": "ROUGE-L, stemmed",
    "rouge_l_unstemmed": "ROUGE-L, unstemmed",
    "bertscore": "BERTScore",
    "bartscore": "BARTScore",
    "bleurt": "BLEURT",
    "p_content": "Content P-Score",
    "p_format": "Format P-Score",
}
"""The columns of the paper's Table 2, in the same order."""
COMPILES = "form_compiles"  # The metric that TeX accepts an output; measured for LaTeX only.
FORM = "form"  # The name under which a record keeps the checklist of form.
MOST_NAMED = 3  # Differing cells in the note of a case.
LONGEST_CELL = 80  # Characters per differing cell there.
RELEASED = {"h_content_released": "Content H-Score, released", "h_format_released": "Format H-Score, released"}


def solver(setup: Setup) -> Solver:
    """Make the solver, which is the same for all modes because they differ only in the question."""
    options = StrucBenchOptions.of(setup)

    async def solve(sample: Sample, model: Model) -> Transcript:
        # One and a half times the table's expected tokens, at 2.5 characters per token.
        room = 32 + int(1.5 * len(str(sample.target)) / 2.5)
        limit = options.max_tokens or max(options.least_tokens, room)
        return await generate(max_tokens=limit, temperature=options.temperature)(sample, model)

    return solve


def scorers(setup: Setup) -> Sequence[Scorer | JudgedScorer]:
    """Make the scorers of an answer; the P-Score is included only if the run has a judge."""
    options = StrucBenchOptions.of(setup)
    chosen: list[Scorer | JudgedScorer] = [score_table]
    folders = {name: folder for name in NEURAL if (folder := getattr(options, name))}
    if folders:
        chosen.append(NeuralScorer(folders, options.bertscore_layer, options.bertscore_baseline))
    return [*chosen, PScorer(options.p_prompt or PROMPT)] if setup.judge else chosen


def score_table(sample: Sample, transcript: Transcript) -> NamedScores:
    """Compute all scores that need no model."""
    written, reference = _find_format(sample), str(sample.target)
    answer = strip_answer(transcript.answer, written)
    wanted = read_tables(reference, written)
    ours = table_score(transcript.answer, reference, format=written)
    # A reference without a table, such as a list, has neither names nor data.
    comparison = compare(ours.match.content, ours.match.wanted.tables) if wanted else TableComparison()
    predicted = ours.match.predicted
    sizes = [[len(table.rows), table.width] for table in wanted]
    people = {"people": sample.metadata["people"]} if "people" in sample.metadata else {}
    share = min(1.0, len(predicted.text) / len(transcript.answer.strip())) if predicted.tables else 0.0
    return {
        "table_score": Score(ours.value, log=[{"signature": ours.signature, **ours.parts}]),
        "table_content": Score(ours.content, _describe_differences(ours), facts={"sizes": sizes, **people}),
        "table_form": Score(ours.form, facts={FORM: [[fact.name, fact.text, fact.fulfilled] for fact in ours.facts]}),
        **_score_released(answer, reference, written),
        **({COMPILES: ours.parts[COMPILES]} if COMPILES in ours.parts else {}),
        "bleu": Score(bleu(answer, reference), facts={FACT: bleu_counts(answer, reference)}),
        "rouge_l": rouge_l(answer, reference),
        "rouge_l_unstemmed": rouge_l(answer, reference, stem=False),
        **error_types(comparison, ours.facts),
        **abilities(
            comparison, source=sample.metadata["text"], form=ours.form, markup=markup_used(ours.facts), share=share
        ),
    }


def _describe_differences(score: TableScore) -> str:
    """Name the first differing cells in one line, such as `Gulls / Wins: 7, not 8`."""
    differences = [cell for cell in score.cells if cell.state != "equal"]
    named = "; ".join(ends_of_line(str(cell), LONGEST_CELL) for cell in differences[:MOST_NAMED])
    return named + (f"; and {more:,} more" if (more := len(differences) - MOST_NAMED) > 0 else "")


def _find_format(sample: Sample) -> Format:
    return cast("Format", sample.tags["format"])


def _score_released(answer: str, reference: str, written: Format) -> NamedScores:
    """Compute the H-Score as published; empty for markup that the published scripts cannot score."""
    try:
        score = h_score(answer, reference, format=written)
    except ScoringError:
        return {}
    return {
        "h_content_released": Score(score.content, log=[{"variant": "released", **score.parts}]),
        "h_format_released": score.format,
    }


class NeuralScorer:
    """Scores by neural metrics with models that the user chose; each model is loaded at its first use."""

    def __init__(self, folders: Mapping[str, str], layer: int | None = None, baseline: str | None = None) -> None:
        self._folders = folders
        self._layer, self._baseline = layer, Path(baseline) if baseline else None
        self._loaded: dict[str, Any] = {}

    def __call__(self, sample: Sample, transcript: Transcript) -> NamedScores:
        answer = strip_answer(transcript.answer, _find_format(sample))
        return {name: self._score(name, answer, str(sample.target)) for name in self._folders}

    def _score(self, name: str, answer: str, reference: str) -> float:
        if name not in self._loaded:
            self._loaded[name] = self._load(name, Path(self._folders[name]))
        score = self._loaded[name].score(answer, reference)
        return float(score.f1 if name == "bertscore" else score)

    def _load(self, name: str, folder: Path) -> Any:
        from evalsuite.metrics.neural import BartScore, BertScore, Bleurt

        if name == "bertscore":
            return BertScore(folder, layer=self._layer, baseline=self._baseline)
        return (BartScore if name == "bartscore" else Bleurt)(folder)


class PScorer:
    """Scores by the paper's P-Score."""

    def __init__(self, prompt: str) -> None:
        self._prompt = prompt

    async def judged(self, sample: Sample, transcript: Transcript, judge: Model) -> NamedScores:
        """Score one transcript; if a judgement cannot be read, only the P-Score is missing."""
        answer, written = strip_answer(transcript.answer, _find_format(sample)), _find_format(sample)
        try:
            score = await p_score(judge, answer, str(sample.target), format=written, prompt=self._prompt)
        except JudgeError as error:
            return {"p_readable": Score(0.0, log=[*error.log, {"error": str(error)}])}
        scores = {"p_content": Score(score.content, log=score.log), "p_format": Score(score.format)}
        return {**sign_scores(scores, score.signature), "p_readable": 1.0}
