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
from evalsuite.benchmarks.dataset_files import (
    AGREEMENT,
    read_field,
    read_json,
    read_json_lines,
    read_text,
    require_type,
)
from evalsuite.core.errors import DatasetError, write_count
from evalsuite.core.types import Sample, ToolCall, Transcript

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
        top, *wrong = [line for _, line in read_json_lines(scored)] or [{}]
        outputs = list(read_json_lines(results))
        if top.get("total_count") != len(outputs):
            raise DatasetError(scored, "line 1", f"total_count {top.get('total_count')}", f"{len(outputs)}, as results")
        failed = {read_field(line, "id", str, scored, "a line") for line in wrong}
        for place, line in outputs:
            id_ = read_field(line, "id", str, results, place)
            several = "turns" in samples[id_].metadata if id_ in samples else False
            result = line.get("result")
            events = _list_multi_turn_events(result) if several else map(make_call_event, _read_bfcl_calls(result))
            transcript = Transcript("", events=tuple(events))
            yield CheckedOutput(id_, transcript, {"correct": float(id_ not in failed)}, f"{results}, {place}")


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
        verdicts = {str(line.get("id")): line for _, line in read_json_lines(scored)}
        for place, line in read_json_lines(path):
            verdict = verdicts.get(str(line.get("id")))
            turns = [
                require_type(turn, dict, path, place) for turn in read_field(line, "conversations", list, path, place)
            ]
            texts = [(turn.get("from"), read_field(turn, "value", str, path, place)) for turn in turns]
            query = next((text for speaker, text in texts if speaker == "user"), "")
            subject = "/".join(read_field(line, "path", str, path, place).split("/")[-2:])
            sample = by_query.get((query, subject))
            if verdict is None or sample is None:
                yield CheckedOutput(str(line.get("id")), Transcript(""), {}, f"{path}, {place}")
                continue
            scores = _read_tool_eyes_scores(verdict, scored)
            yield CheckedOutput(sample.id, make_conversation_transcript(turns), scores, f"{path}, {place}")


def _read_tool_eyes_scores(verdict: Mapping[str, Any], path: Path) -> dict[str, float]:
    try:
        parts = {name: part for key in ("TS", "AO") for entry in verdict[key]["score composition"]
                 for name, part in entry.items()}  # fmt: skip
        marks = [verdict["FA"], parts["Ans_pass"], parts["valid_TS_mean"], verdict["TS"]]
        aligned, finished, match, selected = (float(mark["score for criteria"]) for mark in marks)
    except (AttributeError, KeyError, TypeError, ValueError) as error:
        found = f"{type(error).__name__}: {error}"
        expected = "the scores FA, TS and AO of the evaluation"
        raise DatasetError(path, f"id {verdict.get('id')}", found, expected) from error
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
        for place, line in read_json_lines(path):
            answer = str(line.get("code_run_result" if written == "PoT" else "text_result", ""))
            marks = read_field(line, "judge_scores", dict, path, place)
            scores = {
                name: require_type(marks[key], float, path, f"{place}, score {key}") / most
                for key, (name, most) in TREB_SCORES.items()
                if key in marks
            }
            sample = f"{read_field(line, 'id', str, path, place)}|{TREB_MODES.get(written, written)}"
            yield CheckedOutput(sample, Transcript(answer), scores, f"{path}, {place}")


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
        for place, line in read_json_lines(path):
            scores = read_field(line, "scores", dict, path, place)
            yield CheckedOutput(
                read_field(line, "id", str, path, place),
                Transcript(read_field(line, "answer", str, path, place)),
                {name: float(require_type(value, float, path, place)) for name, value in scores.items()},
                f"{path}, {place}",
            )


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
        plain = read_json(path, dict)
        verdicts, agree = (read_field(plain, name, int, path, "the file") for name in ("verdicts", "agree"))
        return cls(read_field(plain, "scorers", str, path, "the file"), verdicts, agree)

    def write_agreement(self, folder: Path) -> None:
        (folder / AGREEMENT).write_text(f"{json.dumps(asdict(self))}\n", "utf-8")

    def describe_agreement(self) -> str:
        return f"agrees in {self.agree:,} of {write_count(self.verdicts, 'verdict')} of the benchmark's own checker"
