"""The released variant: prompts from a folder in the shape of the authors' repository, scores worked by hand."""

from __future__ import annotations

import asyncio
import json
from typing import TYPE_CHECKING, Any

import pytest

from evalsuite.benchmarks.tool_eyes import TOOL_EYES
from evalsuite.benchmarks.tool_eyes.dataset import load_dataset
from evalsuite.benchmarks.tool_eyes.released import (
    parse_model_message,
    read_answer,
    read_prompts,
    read_score,
    read_shown_answer,
    split_message,
)
from evalsuite.cli import main
from evalsuite.core.errors import DatasetError, SettingsError
from evalsuite.core.protocols import Setup
from evalsuite.core.types import Score

if TYPE_CHECKING:
    from pathlib import Path

    from evalsuite.core.types import Request

# Files in the shape of the released ones, in words of our own.
RUNNER = """
def run(self, turn, finish, messages):
    if broken:
        messages.append({"from": "assistant", "value": "Thought: It broke."})
    if turn > self.args.max_turn and not finish:
        messages.append(
            {"from": "assistant",
             "value": "Thought: Too often.\\nAction: finish\\nAction Input: {\\"answer\\": \\"No luck.\\"}"})

def read(text):
    return {"format": "Mind the form."}
"""
QUESTION = """
PATTERN = "[\\s]"

def {name}(sample, use_demon=False):
    sys_prompt = '''Judge {name}.'''
    user_input = f'''Tools: {{document}}
Asked: {{query}}
{fields}
Mark:'''
"""
FIELDS = {
    "eval_action_thought_matching": "Idea: {thought} Tool: {tool}",
    "eval_thought_quality": "Chain: {thought_chain}",
    "eval_thought_foucus": "Chain: {thought_chain}",
    "eval_thought_validity": "Chain: {thought_chain}",
    "eval_relavance": "Answer: {response}",
}
DOCUMENTS: list[dict[str, Any]] = [
    {
        "name": name,
        "description": f"Does {name}.",
        "parameters": {"type": "object", "properties": {given: {"type": "string"}}, "required": [given]},
    }
    for name, given in (("look", "where"), ("ask_to_user", "question"), ("finish", "answer"))
]
LOOK = "Thought: I look.\nAction: look\nAction Input: {'where': 'there'}"
FINISH = 'Thought: Done.\nAction: finish\nAction Input: {"answer": "Found."}'


@pytest.fixture
def repository(tmp_path: Path) -> Path:
    subject = tmp_path / "Tool_Library" / "Place" / "Finder"
    subject.mkdir(parents=True)
    (subject / "config_gpt4.json").write_text(json.dumps(DOCUMENTS))
    query = {"query": "Where is it?", "path": "ToolEyes/Tool_Library/Place/Finder", "scenario": "TG"}
    (tmp_path / "scenario_data_raw.json").write_text(json.dumps([query]))
    for folder in ("Resources", "Code/Inference", "Code/Evaluation/util"):
        (tmp_path / folder).mkdir(parents=True)
    (tmp_path / "Resources/sys_infer.txt").write_text("Use these.\n{Tool Document}\n\nGo!")
    (tmp_path / "Resources/sys_infer_five_shot.txt").write_text("Use these.\n{Tool Document}\n{examples}\n\nGo!")
    (tmp_path / "Resources/examples.txt").write_text("1. An example.")
    (tmp_path / "Code/Inference/inference.py").write_text(RUNNER)
    questions = "".join(QUESTION.format(name=name, fields=fields) for name, fields in FIELDS.items())
    (tmp_path / "Code/Evaluation/util/process_utils.py").write_text(questions)
    return tmp_path


MARKS = {"foucus": 8, "validity": 9, "quality": 6, "matching": 5, "relavance": 7}


def play(
    repository: Path, backend: Any, turns: list[str], mode: str = "released", **marks: Any
) -> tuple[Any, dict[str, float], list[Request]]:
    setup = Setup("tested", judge="judge", data=repository, modes=(mode,))
    (sample,) = load_dataset(setup).samples

    def answer(request: Request) -> str:
        first = request.messages[0].content
        if first.startswith("You take the place of a software tool"):
            return '{"it": "is there"}'
        if first.startswith("You are the person"):
            return "Over there."
        if request.model == "judge":
            name = next(name for name in MARKS if name in first)
            mark = {**MARKS, **marks}[name]
            return f"Because.\nEvaluation Score: {mark}"
        return turns[sum(message.role == "assistant" for message in request.messages)]

    asked = backend(answer)

    async def run() -> tuple[Any, dict[str, float]]:
        solver: Any = TOOL_EYES.solver(setup)
        transcript = await solver(sample, asked.handle())
        await solver.aclose()
        rules, judge = TOOL_EYES.scorers(setup)
        judgement: Any = await judge.judged(sample, transcript, asked.handle("judge"))  # type: ignore[union-attr]
        scores = {**rules(sample, transcript), **judgement}  # type: ignore[operator, dict-item]
        return transcript, {name: score.value if isinstance(score, Score) else score for name, score in scores.items()}

    return (*asyncio.run(run()), asked.requests)


def questions(requests: list[Request], kind: str) -> list[str]:
    return [request.messages[1].content for request in requests if kind in request.messages[0].content]


def test_a_finished_episode_scores_as_the_released_evaluator_scores_it(repository: Path, backend: Any) -> None:
    unknown = "Thought: t\nAction: nowhere\nAction Input: {}"
    bad = "Thought: t\nAction: look\nAction Input: {'where': true}"
    _, scores, requests = play(repository, backend, [LOOK, bad, unknown, LOOK, FINISH])
    # Five turns, of which `true` is not Python's.
    assert scores["format_alignment"] == pytest.approx(4 / 5)
    # Of the three valid turns before the last, one names no tool.
    assert scores["reality"] == pytest.approx(1 - 1 / 3)
    # The means of reality and of match are multiplied; the last turn has a match and no reality.
    assert scores["tool_selection"] == pytest.approx(2 / 3 * 0.5)
    assert scores["behaviour_planning"] == pytest.approx(0.9 * 0.6)
    assert (scores["intent_comprehension"], scores["answer_organisation"]) == (0.8, 0.7)
    assert scores["overall"] == pytest.approx((0.8 + 0.8 + 0.54 + 1 / 3 + 0.7) / 5)
    # Every turn is asked about, the one without a form included.
    assert len(questions(requests, "matching")) == 5


def test_an_unfinished_episode_has_one_turn_more_and_its_answer_counts(repository: Path, backend: Any) -> None:
    _, scores, requests = play(repository, backend, [LOOK] * 9)
    assert scores["format_alignment"] == pytest.approx(9 / 10)
    assert (scores["finished"], scores["reality"]) == (0.0, 1.0)
    # Not multiplied by whether it was finished.
    assert scores["answer_organisation"] == 0.7
    (quality,) = questions(requests, "relavance")
    assert "Answer: No luck." in quality
    assert len(questions(requests, "matching")) == 10
    assert "Turn 10:\nToo often." in questions(requests, "validity")[0]


def test_a_judgement_that_cannot_be_read_is_a_zero(repository: Path, backend: Any) -> None:
    _, scores, requests = play(repository, backend, [LOOK, FINISH], validity="N/A")
    assert (scores["validity"], scores["behaviour_planning"]) == (0.0, 0.0)
    assert len([request for request in requests if request.model == "judge"]) == 4 + 2 + 1
    for text, value in {
        "Evaluation Score: 10": 1.0,
        "Evaluation Score: 8.5 of 10": 0.8,
        "Evaluation Score: <7>": 0.7,
        "Score: 7": 0.0,
        "Evaluation Score:\n7": 0.0,
        "": 0.0,
    }.items():
        assert read_score(text) == value


def test_after_an_unknown_tool_parameters_are_not_looked_at(repository: Path, backend: Any) -> None:
    unknown = "Thought: t\nAction: nowhere\nAction Input: {}"
    empty = "Thought: t\nAction: look\nAction Input: {}"
    assert play(repository, backend, [unknown, empty, FINISH])[1]["reality"] == pytest.approx(1 / 2)
    assert play(repository, backend, [empty, unknown, FINISH])[1]["reality"] == pytest.approx(0)
    # What was given once counts as given from then on.
    assert play(repository, backend, [LOOK, empty, FINISH])[1]["reality"] == 1.0
    # An episode that finishes at once has no reality at all.
    assert play(repository, backend, [FINISH])[1]["tool_selection"] == 0.0


def test_models_read_the_authors_prompts_and_nothing_else(repository: Path, backend: Any) -> None:
    ask = "Thought: t\nAction: ask_to_user\nAction Input: {'question': 'Where?'}"
    _, _, requests = play(repository, backend, [LOOK, "Action: look\nAction Input: {", ask, FINISH])
    last = [request for request in requests if request.model == "tested"][-1]
    system, *rest = [message.content for message in last.messages]
    assert system == f"Use these.\n{json.dumps(DOCUMENTS)}\n\nGo!"
    assert rest == [
        "Where is it?",
        LOOK,
        'Function: {"it": "is there"}',
        # Put together again from the parts that were found.
        "Thought: \nAction: look\nAction Input: {",
        "Mind the form.",
        ask,
        "Over there.",
    ]
    assert last.params == {"temperature": 0.3, "top_p": 0.5, "max_tokens": 1024}
    (intent,) = questions(requests, "foucus")
    said = "Turn 2:\n\n\nUser request:\nMind the form.\n\nTurn 3:\nt\n\nUser request:\nOver there."
    assert said in intent
    judged = next(request for request in requests if "foucus" in request.messages[0].content)
    assert judged.params == {"temperature": 0, "top_p": 0.5, "max_tokens": 1024}
    five = play(repository, backend, [FINISH], mode="released_5shot")[2][0].messages[0].content
    assert five == f"Use these.\n{json.dumps(DOCUMENTS)}\n1. An example.\n\nGo!"


@pytest.mark.parametrize(
    ("text", "fault", "call"),
    [
        (LOOK, None, ("look", {"where": "there"})),
        # A thought may be missing, and the name of finish may be written in capitals.
        ("Action: look\nAction Input: {'where': 'x'}", None, ("look", {"where": "x"})),
        ("Thought: t\nAction: Finish\nAction Input: nothing", None, ("finish", {"answer": 'nothing"}'})),
        ('Action: finish\nAction Input: {"answer": "x', None, ("finish", {"answer": "x"})),
        # Line breaks within the input go.
        ("Action: look\nAction Input: {'where':\n 'x'}", None, ("look", {"where": "x"})),
        ("It is there.", "keywords", None),
        ("Thought: t\nAction: \nAction Input: {}", "empty_action", None),
        ("Thought: t\nAction: look", "empty_action", None),
        ("Thought: t\nAction: look\nAction Input: {'where': null}", "unparseable", None),
        ("Thought: t\nAction: look\nAction Input: {'where': 'null'}", None, ("look", {"where": "null"})),
        ("Thought: t\nAction: look\nAction Input: {} and so on", "unparseable", None),
    ],
)
def test_turns_are_read_as_the_released_code_reads_them(text: str, fault: str | None, call: Any) -> None:
    turn = parse_model_message(text)
    assert turn.fault == fault
    assert [(made.name, made.arguments) for made in turn.calls] == ([call] if call else [])


def test_a_message_is_put_together_from_its_parts() -> None:
    assert split_message("hm").text == "Thought: \nAction: \nAction Input: {}"
    assert split_message(f"Well. {LOOK}").text == LOOK
    assert read_answer('{"answer": 5, "why": "x"}') == "5"
    assert read_answer('{"Answer": "x"}') == '{"Answer": "x"}'


def test_the_released_modes_need_the_authors_files(repository: Path) -> None:
    with pytest.raises(SettingsError, match="--data=DIR"):
        TOOL_EYES.solver(Setup("tested", modes=("released",)))
    cases = {
        "Resources/sys_infer.txt": ("nothing", "no place {Tool Document}"),
        "Code/Inference/inference.py": ("x = 1", "no text under the key 'format'"),
        "Code/Evaluation/util/process_utils.py": ("def (", "invalid Python"),
    }
    for place, (text, words) in cases.items():
        released = (repository / place).read_text()
        (repository / place).write_text(text)
        read_prompts.cache_clear()
        with pytest.raises(DatasetError, match=words):
            read_prompts(repository)
        (repository / place).write_text(released)
    (repository / "Resources/examples.txt").unlink()
    with pytest.raises(DatasetError, match=r"examples\.txt: no such file"):
        read_prompts(repository)


def test_code_of_the_authors_is_read_and_never_run(repository: Path) -> None:
    place = repository / "Code/Evaluation/util/process_utils.py"
    place.write_text("raise SystemExit('run')\n" + place.read_text())
    read_prompts.cache_clear()
    assert set(read_prompts(repository).questions) == {"intent", "validity", "integrity", "match", "quality"}
    place.write_text(place.read_text().replace("{thought_chain}", "{__import__('os').getcwd()}"))
    read_prompts.cache_clear()
    with pytest.raises(DatasetError, match="expected one of the fields document"):
        read_prompts(repository)


@pytest.mark.parametrize(
    ("written", "shown"),
    [
        ('{"answer": "Oslo"}', "Oslo"),
        ('{"answer": ["Oslo", 1], "x": "y"}', "['Oslo', 1]"),
        ("{'result': 'Oslo'}", "{'result': 'Oslo'}"),
        ('{"result": "Oslo"}', "{}"),
        ("{'a': 'x', 'b': 2}", "{'a': \"x', 'b': \", 'b': ''}"),
        (r'{"answer": "two\n\nlines"}', "two\nlines"),
        (r"{'path': 'a\\b'}", r"{'path': 'a\\b'}"),
        (r"{'path': 'a\\\\b'}", r"{'path': 'a\\b'}"),
    ],
)
def test_the_judge_sees_the_answer_as_the_released_evaluator_shows_it(written: str, shown: str) -> None:
    assert read_shown_answer(written) == shown


def test_the_authors_verdicts_are_repeated(
    repository: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Their files hold the format's score, an unfinished episode, and reality times match as tool selection."""
    given_up = "Thought: No.\nAction: finish\nAction Input: I cannot handle the task. (trying too many times)"
    episodes = [[LOOK, FINISH], [LOOK.replace("where", "when"), "Hello", FINISH], [LOOK, given_up]]
    verdicts, outputs = [], []
    for name, written, alignment, finished, selection in zip(
        "abc", episodes, (1, 2 / 3, 0.5), (1, 1, 0), (0.6, 0, 0.6), strict=True
    ):
        turns = [{"from": "user", "value": "Where is it?"}, *({"from": "assistant", "value": one} for one in written)]
        outputs.append({"id": name, "path": "./Tool_Library/Place/Finder", "conversations": turns})
        parts = {"tool_reality": 0, "valid_TS_mean": 0.6, "Ans_pass": finished}
        composition = [{part: {"score for criteria": value}} for part, value in parts.items()]
        fields = {"FA": alignment, "TS": selection, "AO": 0.5}
        scored = {key: {"score for criteria": mark, "score composition": composition} for key, mark in fields.items()}
        verdicts.append({"id": name, **scored})
    for file, lines in (("tmp/m_res.jsonl", outputs), ("jsonl/m_structured_data.jsonl", verdicts)):
        path = tmp_path / "given" / file
        path.parent.mkdir(parents=True)
        path.write_text("".join(f"{json.dumps(line)}\n" for line in lines))
    (tmp_path / "data").mkdir()
    (tmp_path / "data" / "tool_eyes").symlink_to(repository, target_is_directory=True)
    command = [
        "score",
        "benchmark",
        "tool_eyes",
        "--against",
        str(tmp_path / "given"),
        "--data",
        str(tmp_path / "data"),
    ]
    assert main(command) == 0
    assert capsys.readouterr().out == "tool_eyes: agrees in 9 of 9 verdicts of the benchmark's own checker\n"
