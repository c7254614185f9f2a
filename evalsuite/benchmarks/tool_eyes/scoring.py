"""Score ToolEyes' episodes by the formulas of the paper or of the released code, depending on the sample's mode."""

import asyncio
import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from evalsuite.benchmarks.tool_eyes import released
from evalsuite.benchmarks.tool_eyes.dataset import (
    RELEASED_MODES,
    Step,
    combine_capabilities,
    is_finished,
    is_real_call,
    list_judge_log,
    read_steps,
)
from evalsuite.benchmarks.tool_eyes.released import ReleasedPrompts
from evalsuite.core.errors import JudgeError
from evalsuite.core.protocols import JudgedScorer, Model, Scorer, Setup
from evalsuite.core.types import Sample, Score, Transcript
from evalsuite.judges.asking import ask_until_parsed
from evalsuite.judges.forms import Likert, ScoresForm
from evalsuite.judges.judgements import sign_scores, write_signature
from evalsuite.judges.prompts import Part, mark_sections


def make_scorers(setup: Setup) -> Sequence[Scorer | JudgedScorer]:
    """Return the rule scorer and, if the run has a judge, the scorer of the judged capabilities."""
    if not setup.judge:
        return [RuleScores()]
    prompts = released.read_prompts(setup.data) if set(RELEASED_MODES) & set(setup.modes) else None
    return [RuleScores(), JudgedCapabilities(prompts)]


@dataclass(frozen=True, slots=True)
class RuleScores:
    """Computes the scores that need no judge, by the formulas of the sample's mode."""

    def __call__(self, sample: Sample, transcript: Transcript) -> dict[str, float]:
        """Return `format_alignment`, `reality` and `finished`, each in [0, 1].

        `format_alignment` is the share of valid turns. In the released modes, an unfinished episode has an additional,
        malformed turn, because the released runner adds one. `reality` is the share of real calls (right tool and
        parameter names) in a turn, averaged over valid turns; 0 if no turn is valid. In the released modes,
        `_compute_released_reality` defines it. `finished` is 1 if the model called finish within the limit of turns.
        """
        steps, finished = read_steps(transcript), is_finished(transcript)
        valid = [step for step in steps if step.is_well_formed]
        if sample.tags["mode"] in RELEASED_MODES:
            turns = len(steps) if finished else len(steps) + 1
            reality = _compute_released_reality(sample, steps[:-1] if finished else steps)
        else:
            turns = len(steps)
            real = [sum(map(is_real_call, step.calls)) / max(1, len(step.calls)) for step in valid]
            reality = sum(real) / len(real) if real else 0.0
        return {"format_alignment": len(valid) / turns, "reality": reality, "finished": float(finished)}


def _compute_released_reality(sample: Sample, steps: Sequence[Step]) -> float:
    """Compute 1 - (calls of unknown tools + calls with wrong parameters) / calls in valid turns; 0 without calls.

    `steps` excludes the turn that calls finish. Parameters are not checked after the first unknown tool. Once a call
    has given a required parameter, later calls of the same tool may omit it.
    """
    documents = {document["name"]: document["parameters"] for document in reversed(sample.metadata["documents"])}
    due = {name: set(schema.get("required", ())) for name, schema in documents.items()}
    unknown_tools = wrong_parameters = 0
    calls = [call for step in steps if step.is_well_formed for call in step.calls]
    for call in calls:
        unknown_tools += call["tool"] not in documents
        if not unknown_tools:
            due[call["tool"]] -= set(call["arguments"])
            unknown = set(call["arguments"]) - set(documents[call["tool"]].get("properties", {}))
            wrong_parameters += bool(due[call["tool"]] or unknown)
    return 1 - (unknown_tools + wrong_parameters) / len(calls) if calls else 0.0


@dataclass(frozen=True, slots=True)
class JudgedCapabilities:
    """Lets a judge score capabilities; `released` holds the authors' questions if a mode of the run uses them."""

    released: ReleasedPrompts | None = None

    async def judged(self, sample: Sample, transcript: Transcript, judge: Model) -> dict[str, float | Score]:
        """Return scores in [0, 1] by name; see `judge_capabilities` in this module and in `released.py`."""
        rules = RuleScores()(sample, transcript)
        if sample.tags["mode"] in RELEASED_MODES and self.released:
            scores = await released.judge_capabilities(sample, transcript, judge, self.released, rules)
            asked, params = repr(self.released.questions), released.JUDGE_PARAMETERS
            return sign_scores(scores, write_signature("tool_eyes:released", [judge], asked, params))
        scores = await judge_capabilities(sample, transcript, judge, rules["format_alignment"])
        templates = [
            make_judge_prompt(name, (), "", (), native=native) for name in _CRITERIA for native in (False, True)
        ]
        return sign_scores(scores, write_signature("tool_eyes", [judge], templates, JUDGE_PARAMETERS))


JUDGE_PARAMETERS: Mapping[str, Any] = {"temperature": 0, "max_tokens": 512}
# As in the published evaluator, the `match` score of a call without a thought is 5 of 10; the judge is not asked.
NO_THOUGHT = 0.5
NOT_RUN = "(this turn was not of the demanded form, so nothing was called)"
LONGEST_IN_LOG = 200  # Longer observations are replaced by their length in the judge's log.


async def judge_capabilities(
    sample: Sample, transcript: Transcript, judge: Model, alignment: float
) -> dict[str, float | Score]:
    """Return the capabilities that the judge scores, their parts, and `overall`, the mean of all five capabilities.

    The judge gets three questions per episode, one per call of a valid turn, and one about the answer. In modes that
    demand thoughts, calls without a thought are not judged. Without a valid turn, `match` is missing. In an unfinished
    episode, `quality` is missing. `alignment` is the score `format_alignment`.
    """
    documents, steps = sample.metadata["documents"], read_steps(transcript)
    native = sample.tags["mode"] == "functions"  # In this mode, a call needs no thought.
    answers: dict[str, float] = {}
    logs: dict[str, Sequence[Mapping[str, Any]]] = {}
    problems: dict[str, str] = {}

    async def ask(name: str, criterion: str, sections: Sequence[Part]) -> None:
        prompt = make_judge_prompt(criterion, documents, str(sample.input), sections, native=native)
        try:
            judgement = await ask_until_parsed(judge, prompt, parse_score, **JUDGE_PARAMETERS)
            answers[name], logs[name] = judgement.value, judgement.log
        except JudgeError as error:
            # Do not raise the error yet, because the answers to the other questions are already paid for.
            logs[name], problems[name] = error.log, f"{name}: {error}"

    await asyncio.gather(*(ask(*question) for question in _list_questions(steps, transcript, native=native)))
    log = [
        {**entry, "content": _shorten_logged_prompt(entry["content"], documents, steps)}
        for entry in list_judge_log(logs)
    ]
    if problems:
        raise JudgeError(problems[min(problems)], log)
    turns = []
    for number, step in enumerate(steps, 1):
        if step.is_well_formed:
            matches = [answers.get(f"match {number}.{at}", NO_THOUGHT) for at in range(1, len(step.calls) + 1)]
            products = [match if is_real_call(call) else 0.0 for match, call in zip(matches, step.calls, strict=True)]
            turns.append([sum(values) / max(1, len(values)) for values in (matches, products)])
    match, selection = (sum(column) / len(turns) for column in zip(*turns, strict=True)) if turns else (None, 0.0)
    parts = {name: answers.get(name) for name in ("intent", "validity", "integrity", "match", "quality")}
    return combine_capabilities({**parts, "match": match}, selection, alignment, log)


def _list_questions(
    steps: Sequence[Step], transcript: Transcript, *, native: bool
) -> Iterator[tuple[str, str, Sequence[Part]]]:
    """Yield the name of each question to the judge, its criterion, and the parts of the episode that it shows."""
    for criterion in ("intent", "validity", "integrity"):
        yield criterion, criterion, _list_thoughts_and_calls(steps, native=native)
    for number, step in enumerate(steps, 1):
        for at, call in enumerate(step.calls if step.is_well_formed else (), 1):
            tool = ("tool", _format_call(call))
            if step.thought:
                yield f"match {number}.{at}", "match", [("thought", step.thought), tool]
            elif native:
                before = _list_thoughts_and_calls(steps[: number - 1], native=native)
                yield f"match {number}.{at}", "match_call", [*before, tool]
    if is_finished(transcript):
        valid = [(number, step) for number, step in enumerate(steps, 1) if step.is_well_formed]
        results = [part for number, step in valid for part in _list_turn_results(number, step)]
        yield "quality", "quality", [*results, ("answer", transcript.answer)]


def _list_thoughts_and_calls(steps: Sequence[Step], *, native: bool) -> list[Part]:
    """List each thought with its calls and their results."""
    sections: list[Part] = []
    for number, step in enumerate(steps, 1):
        if step.thought or not native:
            sections.append((f"thought {number}", step.thought or "(no thought was written)"))
        sections += _list_turn_results(number, step)
    return sections


def _list_turn_results(number: int, step: Step) -> list[Part]:
    """List a turn's calls, each with the tool's result or the user's reply."""
    sections: list[Part] = [] if step.is_well_formed else [(f"call {number}", NOT_RUN)]
    for at, call in enumerate(step.calls, 1):
        if call["tool"] == "finish" and not call["failed"]:
            continue
        place = f"{number}.{at}"
        came = "said by the user" if call["tool"] == "ask_to_user" else f"result {place}"
        sections += [(f"call {place}", _format_call(call)), (came, str(call["observation"]))]
    return sections


def _shorten_logged_prompt(text: str, documents: Sequence[Mapping[str, Any]], steps: Sequence[Step]) -> str:
    """Replace the documents and long results in a judge's question or answer by short notes."""
    text = text.replace(encode_documents(documents), f"(documents of {len(documents)} tools)")
    for number, step in enumerate(steps, 1):
        for at, call in enumerate(step.calls, 1):
            observation = str(call["observation"]).strip()
            if len(observation) > LONGEST_IN_LOG:
                text = text.replace(observation, f"(result {number}.{at}, {len(observation)} characters)")
    return text


def _format_call(call: Mapping[str, Any]) -> str:
    return f"{call['tool']} {json.dumps(call['arguments'], ensure_ascii=False)}"


_FORM = ScoresForm((Likert("", 1, 10, name="Score"),))

_CRITERIA = {
    "intent": """\
Judge how well the assistant's thoughts follow what the user wants:
- every thought serves the user's request and does not wander off;
- what the user says later, or what turns out on the way, is taken up at once. If nothing new came up, leave \
this point out.""",
    "validity": """\
Judge how well the assistant plans, by its thoughts:
- a thought sums up what is known so far, completely and briefly;
- a thought says in good time and in some detail what to do next;
- thoughts differ from one another, and each brings the task forward instead of repeating the one before.""",
    "integrity": """\
Judge how sound the assistant's thoughts are:
- their language is free of mistakes;
- they do not contradict each other, the request or what the tools returned, which is shown after each call;
- where the assistant did go wrong, it notices and corrects itself soon.""",
    "match": """\
Judge how well the tool that the assistant chose fits the thought it wrote down before: does this tool, among \
all that are documented, serve best what the thought plans to do?""",
    "match_call": """\
Judge how well the tool that the assistant called last fits what was to be done at that point: does this tool, \
among all that are documented, bring the request forward best, going by what was known then?""",
    "quality": """\
Judge the answer that the user gets in the end:
- it answers what was asked;
- it says nothing that is wrong or that the tools' results contradict; what you cannot check counts as right;
- where it does not solve the task, it at least tells the user how to get further. If it solves the task, \
leave this point out.""",
}

_NATIVE_CALLS_NOTE = """\
The assistant called its tools without having to write thoughts down. Where it wrote none, take its calls for \
its thoughts, and do not hold the missing words against it."""


def encode_documents(documents: Sequence[Mapping[str, Any]]) -> str:
    """Write tools' documents for a judge: one line of JSON per document."""
    return "\n".join(json.dumps(document, ensure_ascii=False) for document in documents)


def make_judge_prompt(
    criterion: str, documents: Sequence[Mapping[str, Any]], request: str, sections: Sequence[Part], *, native: bool
) -> str:
    """Write a question to the judge; if `native` is true, the question explains that native calls lack thoughts."""
    note = f"{_NATIVE_CALLS_NOTE}\n\n" if native and criterion in {"intent", "validity", "integrity"} else ""
    parts = [("tools, one document a line", encode_documents(documents)), ("request", request), *sections]
    return (
        "An assistant has worked on a user's request with the help of tools.\n"
        f"{_CRITERIA[criterion]}\n\n{note}{mark_sections(parts)}\n\n"
        "Give your reasons in a few sentences; then end with one line that holds nothing but your score, from 1 "
        "(worst) to 10 (best):\nScore: <number>"
    )


def parse_score(text: str) -> float:
    """Read the judge's score from 1 to 10, and divide it by 10."""
    return _FORM.parse_opinion(text).scores["Score"] / 10
