"""The authors' files `config.yaml`: their templates are the prompts of `paper:` modes, and the report names them."""

from __future__ import annotations

import re
from random import Random
from typing import TYPE_CHECKING, Any

import pytest

from evalsuite.benchmarks.chat_eval.report import make_report
from evalsuite.core.errors import DatasetError

if TYPE_CHECKING:
    from pathlib import Path

PAIRS = """\
    Asked: ${source_text}
    One: ${compared_text_one}
    Two: ${compared_text_two}
    Weigh both.
    So far:
    ${chat_history}
    ${role_description}
    Speak, ${agent_name}!
    ${final_prompt}
"""
RESPONSES = """\
    Talk: ${source_text}
    Known: ${reference_text}
    Reply: ${generated_text}
    So far: ${chat_history}
    ${role_description}
    ${final_prompt}
"""
SUMMARY = "    Shorten.\n    Before: ${summary}\n    New:\n    ${new_lines}\n"
SCORES = "".join(f"      The score of Assistant {at}: [score only]\n" for at in (1, 2))


def write(
    folder: Path,
    name: str,
    *agents: str,
    template: str = PAIRS,
    final: str = SCORES,
    turns: int = 4,
    order: str = "sequential",
    role: str = "You are {}, with taste {}.",
    summary: bool = False,
) -> None:
    """Write a file in the published format."""
    manipulator = (
        "      memory_manipulator_type: summary\n      summary_template: *summary_prompt\n"
        if summary
        else "      memory_manipulator_type: basic\n"
    )
    text = f"prompts:\n  prompt: &prompt |-\n{template}\n" + (f"  s: &summary_prompt |\n{SUMMARY}\n" if summary else "")
    text += f"environment:\n  env_type: llm_eval\n  max_turns: {turns}\n  rule:\n    order:\n      type: {order}\n"
    text += "agents:\n"
    for at, agent in enumerate(agents, 1):
        text += f"  -\n    agent_type: llm_eval_multi\n    name: {agent}\n"
        text += f"    final_prompt_to_use: |-\n{final}" if final else ""
        text += f"    role_description: |-\n      {role.format(agent, at)}\n    memory_manipulator:\n{manipulator}"
        text += (
            "    prompt_template: *prompt\n    llm:\n      model: m\n      temperature: 0.25\n      max_tokens: 99\n"
        )
    path = folder / "llm_eval" / name / "config.yaml"
    path.parent.mkdir(parents=True)
    path.write_text(text + "\ntools: ~\n", "utf-8")


def speak(prompt: str) -> str:
    """Say something, or give the scores that a final prompt requests."""
    if "Shorten." in prompt:
        return "In short: both spoke."
    if "score of Assistant" in prompt:
        return "There are reasons.\nThe score of Assistant 1: 9\nThe score of Assistant 2: 4"
    return f"I have looked at it, as {' and '.join(re.findall(r'Speak, (.+?)!', prompt))}."


def pairs(run: Any) -> list[Any]:
    return [record for record in run.records.values() if record.tags["task"] == "pairs"]


def test_a_debate_uses_the_template_the_roles_and_the_final_form(judged: Any, folder: Any) -> None:
    told = '{"question_id": %d, "text": "Answer of %s.", "model_id": "m"}\n'
    systems = {"gpt35": "one", "vicuna-13b": "other"}
    data = folder(
        **{f"answer/answer_{name}.jsonl": told % (1, said) + told % (2, said) for name, said in systems.items()}
    )
    write(data, "faireval/two_turns/x", "General Public", "Critic")
    run = judged(speak, "paper:one_by_one", data=data)
    debate = [prompt for prompt in run.judge.prompts if prompt.startswith("Asked: Question 1?\nOne: Answer of one.")]
    assert len(debate) == 4
    assert debate[0].rstrip().endswith("So far:\n\nYou are General Public, with taste 1.\nSpeak, General Public!")
    assert debate[3].count("[General Public]: ") == 2
    assert debate[3].count("[Critic]: I have looked at it, as Critic.") == 1
    assert [("The score of Assistant 1: [score only]" in prompt) for prompt in debate] == [False, False, True, True]
    assert "<" not in debate[3]
    assert {(params["temperature"], params["max_tokens"]) for params in run.judge.params[:4]} == {(0.25, 99)}
    # The first place always wins, so that both orders together are a tie.
    assert {record.facts["verdict"] for record in pairs(run)} == {"tie"}
    assert {record.facts["prompts"] for record in pairs(run)} == {"llm_eval/faireval/two_turns/x/config.yaml"}
    shown = str(make_report([run.view]))
    assert "paper:one_by_one, pairs: llm_eval/faireval/two_turns/x/config.yaml" in shown
    assert "paper:one_by_one, dialogues: this project's own words" in shown


def test_a_template_without_the_debate_is_followed_by_the_debate_as_messages(judged: Any, folder: Any) -> None:
    data = folder()
    write(data, "x", "General Public", "Critic", template=PAIRS.replace("${chat_history}", "(below)"))
    run = judged(speak, "paper:one_by_one", data=data)
    debates = [prompt for prompt in run.judge.prompts if prompt.startswith("Asked: Question 1?")]
    heard = "General Public: I have looked at it, as General Public.\nCritic: I have looked at it, as Critic."
    final = SCORES.replace("      ", "").rstrip()
    assert [prompt.endswith(f"Speak, Critic!\n\n{heard.splitlines()[0]}\n") for prompt in debates].count(True) == 2
    assert [prompt.endswith(f"{heard}\n{final}") for prompt in debates].count(True) == 2


def test_agents_of_one_name_have_final_prompts_of_their_own(judged: Any, folder: Any) -> None:
    data = folder()
    write(data, "faireval/x", "A", "A")
    file = data / "llm_eval" / "faireval" / "x" / "config.yaml"
    head, _, tail = file.read_text("utf-8").rpartition("The score of Assistant 1")
    file.write_text(f"{head}Be strict.\n      The score of Assistant 1{tail}", "utf-8")
    run = judged(speak, "paper:one_by_one", data=data)
    final = [prompt for prompt in run.judge.prompts if "The score of Assistant 1: [score only]" in prompt]
    assert ["Be strict." in prompt for prompt in final].count(True) == len(final) / 2


def test_parameters_of_the_declaration_override_those_of_the_file(judged: Any, folder: Any) -> None:
    data = folder()
    write(data, "faireval/x", "A", "B")
    run = judged(speak, "paper:one_by_one", data=data, max_tokens=7)
    debated = [
        params for prompt, params in zip(run.judge.prompts, run.judge.params, strict=True) if prompt.startswith("Asked")
    ]
    assert {(params["temperature"], params["max_tokens"]) for params in debated} == {(0.25, 7)}


@pytest.mark.parametrize(
    ("mode", "setting"),
    [
        ("paper:simultaneous", {"order": "concurrent", "turns": 2}),
        ("paper:simultaneous_summarizer", {"order": "concurrent", "turns": 2, "summary": True}),
        ("paper:one_by_one:3roles", {"turns": 6}),
        ("paper:one_by_one:2roles:3turns", {"turns": 6}),
        ("paper:one_by_one:2roles:2turns:same_role", {"role": "You are {}, a referee."}),
        ("paper:single", {"turns": 1, "role": ""}),
    ],
)
def test_a_mode_uses_the_file_of_its_strategy_roles_and_turns(
    judged: Any, folder: Any, mode: str, setting: dict[str, Any]
) -> None:
    data, rng = folder(), Random()
    count = 3 if "3roles" in mode else 1 if mode == "paper:single" else 2
    names = [f"Referee{rng.randrange(1000)}x{at}" for at in range(count)]
    write(data, "faireval/right", *names, **setting)
    write(data, "faireval/another", *names, "One More", turns=8)
    write(data, "faireval/a_third", *names[:2], turns=4, role="You are {}." if "role" not in setting else "Be {}{}.")
    run = judged(speak, mode, data=data)
    assert {record.facts["prompts"] for record in pairs(run)} == {"llm_eval/faireval/right/config.yaml"}
    assert all(name in "\n".join(run.judge.prompts) for name in names if mode != "paper:single")
    if "summarizer" in mode:
        assert any("[Summarizer]: In short: both spoke." in prompt for prompt in run.judge.prompts)


def test_each_aspect_of_a_response_is_scored_by_its_own_file(judged: Any, folder: Any) -> None:
    data = folder()
    for aspect in ("naturalness", "coherence", "engagingness", "groundedness"):
        final = f"      Rate it.\n      - {aspect}:\n"
        write(data, f"topical_chat/{aspect}/thought", "A", "B", template=RESPONSES, final=final)
    said = {"naturalness": "3", "coherence": "- coherence: 2", "engagingness": "Engagingness: 1", "groundedness": "0"}

    def rate(prompt: str) -> str:
        asked = [answer for aspect, answer in said.items() if f"- {aspect}:" in prompt]
        return asked[0] if asked else "Let me think."

    run = judged(rate, "paper:one_by_one", data=data)
    (record,) = (record for record in run.records.values() if record.tags["task"] == "dialogues")
    assert record.facts["judged"] == {"naturalness": 3, "coherence": 2, "engagingness": 1, "groundedness": 0}
    assert [(ballot["judge"], len(ballot["scores"])) for ballot in record.facts["ballots"]] == [("A", 4), ("B", 4)]
    assert record.facts["calls"] == 16
    assert record.facts["prompts"].count("config.yaml") == 4


def test_without_all_aspects_own_words_are_used(judged: Any, folder: Any) -> None:
    data = folder()
    write(data, "topical_chat/coherence/x", "A", "B", template=RESPONSES)
    run = judged(lambda _: "", "paper:one_by_one", data=data)
    assert {record.facts["prompts"] for record in run.records.values()} == {"this project's own words"}


def test_settings_without_scores_are_left_out(judged: Any, folder: Any) -> None:
    data = folder()
    write(data, "faireval/direct_pair_comparison/x", "A", "B")
    run = judged(lambda _: "", "paper:one_by_one", data=data)
    assert {record.facts["prompts"] for record in pairs(run)} == {"this project's own words"}


@pytest.mark.parametrize(
    ("written", "wrong", "problem"),
    [
        (
            "type: sequential",
            "type: random",
            "field 'order', field 'type': found 'random', expected sequential or concurrent",
        ),
        (
            "temperature: 0.25",
            "temperature: 2026-01-01",
            "field 'agents', element 1, field 'llm', field 'temperature': found \"2026-01-01\"",
        ),
        (
            "temperature: 0.25",
            "temperature: .nan",
            "field 'agents', element 1, field 'llm', field 'temperature': found NaN, expected a finite number",
        ),
        (
            "temperature: 0.25",
            "temperature: -.inf",
            "field 'agents', element 1, field 'llm', field 'temperature': found -Infinity, expected a finite",
        ),
        (
            "max_tokens: 99",
            "max_tokens: '99'",
            "field 'agents', element 1, field 'llm', field 'max_tokens': found \"99\", expected a whole number",
        ),
        ("llm:", "llm: gpt-4\n    x:", "field 'agents', element 1, field 'llm': found \"gpt-4\", expected an object"),
        ("role_description: |-", "role_description: [a]\n    x: |-", "field 'role_description': found"),
        ("final_prompt_to_use: |-", "final_prompt_to_use: [a]\n    x: |-", "field 'final_prompt_to_use': found"),
        ("memory_manipulator:", "memory_manipulator: basic\n    x:", "field 'memory_manipulator': found \"basic\""),
        ("agents:", "agents: 3\nx:", r"config.yaml, field 'agents': found 3, expected a list"),
        ("tools: ~", "tools: 2026-99-99", "invalid YAML"),
        ("tools: ~", f"tools: {'[' * 3000}", "invalid YAML"),
    ],
)
def test_a_field_of_another_type_is_refused_with_its_place(
    judged: Any, folder: Any, written: str, wrong: str, problem: str
) -> None:
    data = folder()
    write(data, "faireval/x", "A", "B")
    file = data / "llm_eval" / "faireval" / "x" / "config.yaml"
    assert written in file.read_text("utf-8")
    file.write_text(file.read_text("utf-8").replace(written, wrong), "utf-8")
    with pytest.raises(DatasetError, match=problem):
        judged(speak, "paper:one_by_one", data=data)


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("agents: []", "environment"),
        ("prompts: [", "invalid YAML"),
        ("environment: {rule: {}}\nagents: []", "no agent"),
    ],
)
def test_a_file_in_another_form_is_refused_by_name(judged: Any, folder: Any, text: str, problem: str) -> None:
    data = folder()
    (data / "llm_eval").mkdir()
    (data / "llm_eval" / "config.yaml").write_text(f"# {PAIRS!r}\n{text}")
    with pytest.raises(DatasetError, match=problem):
        judged(speak, "paper:single", data=data)
    judged(lambda _: "Verdict: 1", "single", data=data)


def test_the_single_referee_of_our_own_words_has_no_role_and_no_panel(judged: Any) -> None:
    run = judged(lambda _: "Score of answer 1: 9\nScore of answer 2: 3", "paper:single")
    shown = "\n".join(run.judge.prompts)
    assert not re.search(r"panel|others|general public|your turn", shown)
    assert {record.facts["calls"] for record in pairs(run)} == {2}
