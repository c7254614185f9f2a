"""Read the scores that benchmarks' own checkers wrote to files; the checkers themselves are not run.

`evalsuite score benchmark` scores the same outputs with evalsuite's scorers, and counts outputs with equal scores.
"""

import ast
import json
from collections.abc import Callable, Iterator, Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, Self

from evalsuite.benchmarks.bfcl import make_call_event, make_callable_name
from evalsuite.core.errors import write_count
from evalsuite.core.protocols import AGREEMENT
from evalsuite.core.types import Sample, ToolCall, Transcript
from evalsuite.samples.items import SourceItem, read_json, read_json_lines, read_text

TOLERANCE = 1e-6  # Maximum difference of scores that count as equal, because checkers write rounded numbers.


@dataclass(frozen=True, slots=True)
class CheckedOutput:
    """A model's output, and the scores that the benchmark's own checker gave it."""

    sample: str  # The sample's id.
    transcript: Transcript  # The output in the form that a solver returns.
    scores: Mapping[str, float]  # The checker's scores, under evalsuite's names.
    place: str  # The file and the line of the output.


def read_bfcl_verdicts(folder: Path, samples: Mapping[str, Sample]) -> Iterator[CheckedOutput]:
    """Read BFCL's folders `result` (all answers) and `score` (only the wrong answers)."""
    for results in sorted((folder / "result").rglob("BFCL_v*_result.json")):
        name = results.name.replace("_result.json", "_score.json")
        model = results.relative_to(folder / "result").parts[0]
        scored = next(iter(sorted((folder / "score" / model).rglob(name))), folder / "score" / model / name)
        top, *wrong = list(read_json_lines(scored)) or [SourceItem({}, scored, "line 1")]
        outputs = list(read_json_lines(results))
        if (total := top.fields.get("total_count")) != len(outputs):
            raise top.make_error(f"total_count {total}", f"{len(outputs)}, as results")
        failed = {line.read("id", str) for line in wrong}
        for line in outputs:
            id_, result = line.read("id", str), line.fields.get("result")
            several = "turns" in samples[id_].metadata if id_ in samples else False
            events = _list_multi_turn_events(result) if several else map(make_call_event, _read_bfcl_calls(result))
            transcript = Transcript("", events=tuple(events))
            yield CheckedOutput(id_, transcript, {"correct": float(id_ not in failed)}, line.place)


def _list_multi_turn_events(result: Any) -> Iterator[dict[str, Any]]:
    """List the transcript events of a multi-turn output, which has a list of steps per turn."""
    for steps in result if isinstance(result, list) else ():
        yield {"kind": "user"}
        for step in steps if isinstance(steps, list) else ():
            yield from map(make_call_event, _read_bfcl_calls(step))


def _read_bfcl_calls(result: Any) -> list[ToolCall]:
    """Read the function calls of an output, which is a list of functions with arguments, or a text in Python syntax."""
    if isinstance(result, list):
        pairs = [pair for entry in result if isinstance(entry, dict) for pair in entry.items()]
        return [
            ToolCall("", make_callable_name(name), written if isinstance(written, str) else json.dumps(written))
            for name, written in pairs
        ]
    text = str(result).strip("`\n ")
    try:
        tree = ast.parse(f"{'[' * (text[:1] != '[')}{text}{']' * (text[-1:] != ']')}", mode="eval").body
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return []
    calls = tree.elts if isinstance(tree, ast.List) else []
    if not all(isinstance(call, ast.Call) for call in calls):
        return []
    return [
        ToolCall(
            "",
            make_callable_name(ast.unparse(call.func)),
            json.dumps({word.arg: _evaluate_or_unparse(word.value) for word in call.keywords if word.arg}, default=str),
        )
        for call in calls
        if isinstance(call, ast.Call)
    ]


def _evaluate_or_unparse(expression: ast.expr) -> Any:
    """Return the value of a literal, or the source text of another expression."""
    try:
        return ast.literal_eval(expression)
    except (ValueError, TypeError):
        return ast.unparse(expression)


def read_tool_eyes_verdicts(folder: Path, samples: Mapping[str, Sample]) -> Iterator[CheckedOutput]:
    """Read `tmp/MODEL_res.jsonl` and `jsonl/MODEL_structured_data.jsonl` of the authors' evaluation.

    Compute `reality` as the score of tool selection divided by the score of match, because the evaluator leaves the
    field `tool_reality` at 0.
    """
    from evalsuite.benchmarks.tool_eyes.released import make_conversation_transcript

    by_query = {(sample.input, sample.metadata["subject"]): sample for sample in samples.values()}
    for path in sorted((folder / "tmp").glob("*_res.jsonl")):
        scored = folder / "jsonl" / path.name.replace("_res.jsonl", "_structured_data.jsonl")
        verdicts = {str(line.fields.get("id")): line for line in read_json_lines(scored)}
        for line in read_json_lines(path):
            id_ = str(line.fields.get("id"))
            turns = line.read_items("conversations")
            texts = [(turn.fields.get("from"), turn.read("value", str)) for turn in turns]
            query = next((text for speaker, text in texts if speaker == "user"), "")
            subject = "/".join(line.read("path", str).split("/")[-2:])
            sample = by_query.get((query, subject))
            if id_ not in verdicts or sample is None:
                yield CheckedOutput(id_, Transcript(""), {}, line.place)
                continue
            transcript = make_conversation_transcript([turn.fields for turn in turns])
            yield CheckedOutput(sample.id, transcript, _read_tool_eyes_scores(verdicts[id_]), line.place)


def _read_tool_eyes_scores(verdict: SourceItem) -> dict[str, float]:
    try:
        parts = {name: part for key in ("TS", "AO") for entry in verdict.fields[key]["score composition"]
                 for name, part in entry.items()}  # fmt: skip
        marks = [verdict.fields["FA"], parts["Ans_pass"], parts["valid_TS_mean"], verdict.fields["TS"]]
        aligned, finished, match, selected = (float(mark["score for criteria"]) for mark in marks)
    except (AttributeError, KeyError, OverflowError, TypeError, ValueError) as error:
        found = f"{type(error).__name__}: {error}"
        raise verdict.make_error(found, "the scores FA, TS and AO of the evaluation") from error
    return {"format_alignment": aligned, "finished": finished} | ({"reality": selected / match} if match else {})


TREB_MODES = {"TCoT": "tcot", "TCoT_md": "tcot_markdown", "TCoT_html": "tcot_html", "PoT": "pot", "ICoT": "icot"}
TREB_SCORES = {
    "ROUGE": ("rouge_l_released", 1),
    "BLEU": ("bleu_released", 100),
    "EM": ("exact_match_released", 1),
    "follow_score": ("instruction_following", 100),
}
"""For each score in TReB's files: evalsuite's name, and the score's maximum in the files."""


def read_treb_verdicts(folder: Path, samples: Mapping[str, Sample]) -> Iterator[CheckedOutput]:  # noqa: ARG001 - the readers' signature
    """Read `MODE--SUBTASK--round1--judge.jsonl`, the files that the step `judge` of TReB's code writes."""
    for path in sorted(folder.rglob("*--judge.jsonl")):
        written = path.name.partition("--")[0]
        for line in read_json_lines(path):
            answer = str(line.fields.get("code_run_result" if written == "PoT" else "text_result", ""))
            marks = line.read_item("judge_scores")
            scores = {
                name: marks.read(key, float) / most for key, (name, most) in TREB_SCORES.items() if key in marks.fields
            }
            sample = f"{line.read('id', str)}|{TREB_MODES.get(written, written)}"
            yield CheckedOutput(sample, Transcript(answer), scores, line.place)


def read_wiki_verdicts(folder: Path, samples: Mapping[str, Sample]) -> Iterator[CheckedOutput]:  # noqa: ARG001 - the readers' signature
    """Read predictions from `NAME.tsv` (id and values), and scores from `NAME.txt`, the output of `evaluator.py`."""
    for path in sorted(folder.glob("*.tsv")):
        lines = [line.split("\t") for line in read_text(path.with_suffix(".txt")).splitlines()]
        verdicts = {line[0]: line[1] for line in lines if len(line) > 1 and line[1] in {"True", "False"}}
        for number, line in enumerate(read_text(path).splitlines(), 1):
            id_, *values = line.split("\t")
            known = {"denotation": float(verdicts[id_] == "True")} if id_ in verdicts else {}
            yield CheckedOutput(id_, Transcript("\n".join(values)), known, f"{path}, line {number}")


def read_plain_verdicts(folder: Path, samples: Mapping[str, Sample]) -> Iterator[CheckedOutput]:  # noqa: ARG001 - the readers' signature
    """Read JSON lines `{id, answer, scores: {name: value}}`, which users may write for any checker."""
    for path in sorted(folder.glob("*.jsonl")):
        for line in read_json_lines(path):
            marks = line.read_item("scores")
            scores = {name: float(marks.read(name, float)) for name in marks.fields}
            yield CheckedOutput(line.read("id", str), Transcript(line.read("answer", str)), scores, line.place)


READERS: Mapping[str, Callable[[Path, Mapping[str, Sample]], Iterator[CheckedOutput]]] = {
    "bfcl": read_bfcl_verdicts,
    "tool_eyes": read_tool_eyes_verdicts,
    "treb": read_treb_verdicts,
    "wikitablequestions": read_wiki_verdicts,
}
MODES = {"tool_eyes": ["released"], "treb": ["auto", "published"]}
"""The modes in which a benchmark has the same scores as its own checker."""


@dataclass(frozen=True, slots=True)
class Agreement:
    """How often evalsuite's scorers agree with a benchmark's own checker."""

    scorers: str  # Fingerprint of the scorers.
    verdicts: int
    agree: int

    @classmethod
    def read_agreement(cls, folder: Path) -> Self:
        path = folder / AGREEMENT
        item = SourceItem(read_json(path, dict), path, "the file")
        return cls(item.read("scorers", str), item.read("verdicts", int), item.read("agree", int))

    def write_agreement(self, folder: Path) -> None:
        (folder / AGREEMENT).write_text(f"{json.dumps(asdict(self))}\n", "utf-8")

    def describe_agreement(self) -> str:
        return f"agrees in {self.agree:,} of {write_count(self.verdicts, 'verdict')} of the benchmark's own checker"
