"""Read the prompts that ChatEval's authors released in their repository; each `config.yaml` configures one panel."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from string import Template
from typing import Any

from evalsuite.benchmarks.chat_eval.dataset import ASPECT_NAMES
from evalsuite.core.protocols import Model
from evalsuite.core.types import Message
from evalsuite.judges.asking import wait_for_all
from evalsuite.judges.forms import Form
from evalsuite.judges.judgements import Assessment, Opinion, average_scores
from evalsuite.judges.panels import DebaterRole, Panel, PromptWriter, Stage, Strategy
from evalsuite.judges.prompts import JudgedInput, Part
from evalsuite.samples.files import parse_yaml
from evalsuite.samples.items import read_text, require_item

FOLDER = "llm_eval"  # Folder of all configurations; `agentverse/tasks/llm_eval` in the authors' repository.
SLOTS = {"pairs": ("compared_text_one", "compared_text_two"), "dialogues": ("generated_text", "reference_text")}
SETS = {"pairs": "faireval", "dialogues": "topical_chat"}
ORDERS = ("sequential", "concurrent")
PARAMS: Mapping[str, type[float]] = {"temperature": float, "max_tokens": int}
OTHER_FORM = "direct_pair_comparison"  # Name of the folders with panels that give a verdict instead of scores.


@dataclass(frozen=True, slots=True)
class AuthorsSetting:
    """A panel's configuration in one of the authors' files: debaters, strategy, turns and templates."""

    file: str  # The path relative to the benchmark's data.
    debaters: tuple[DebaterRole, ...]
    strategy: Strategy
    turns: int
    template: str
    final: Mapping[DebaterRole, str]  # For each debater, the text that states the required form of the judgement.
    summary: str  # The template of the summarizer's prompt.
    params: Mapping[str, Any]  # Generation parameters: temperature and maximum tokens.

    def make_panel(self, form: Form, params: Mapping[str, Any], **options: Any) -> Panel:
        """Make the panel that this configuration describes; `params` override the configuration's parameters."""
        options = {**options, "params": {**self.params, **params}, "prompt_writer": AuthorsPromptWriter(form, self)}
        return Panel(form, self.debaters, self.strategy, self.turns, **options)


@dataclass(frozen=True, slots=True)
class AuthorsPromptWriter(PromptWriter):
    """Fills the authors' templates; its prompts have no section marks."""

    setting: AuthorsSetting

    def describe_debater(self, debater: DebaterRole) -> str:
        return debater.prompt

    def write_prompt(
        self, debater: DebaterRole, subject: JudgedInput, speeches: Sequence[Part], stage: Stage
    ) -> list[Message]:
        first, *others = subject.answers
        names = {"summary": "Summarizer"}
        slots = {
            "agent_name": debater.name,
            "env_description": "",
            "role_description": debater.prompt,
            "source_text": subject.question,
            "reference_text": subject.background,
            "generated_text": first,
            "compared_text_one": first,
            "compared_text_two": "".join(others),
            "final_prompt": "" if stage == "talk" else self.setting.final[debater],
            "chat_history": "\n".join(f"[{names.get(speaker, speaker)}]: {text}" for speaker, text in speeches),
        }
        prompt = Message("user", Template(self.setting.template).safe_substitute(slots), parts=subject.media)
        if not speeches or "${chat_history}" in self.setting.template:
            return [prompt]
        # Templates of the authors' last code do not quote the debate, which follows as messages.
        debate = [Message("assistant", f"{names.get(speaker, speaker)}: {text}") for speaker, text in speeches]
        return [prompt, *debate, Message("user", slots["final_prompt"])]

    def write_summary_prompt(self, _: JudgedInput, speeches: Sequence[Part]) -> list[Message]:
        lines = "".join(f"[{speaker}] : {text}\n" for speaker, text in speeches)
        return [Message("user", Template(self.setting.summary).safe_substitute(summary="", new_lines=lines))]

    def list_fixed_texts(self) -> Sequence[str]:
        """List the authors' templates and final prompts, for the judge's signature."""
        return (self.setting.template, *self.setting.final.values(), self.setting.summary)


def read_settings(folder: Path | None) -> list[AuthorsSetting]:
    """Read all panel configurations, except those in which the panel gives verdicts instead of scores."""
    files = sorted((folder / FOLDER).rglob("config.yaml")) if folder else []
    texts = {file: read_text(file) for file in files if OTHER_FORM not in file.parts}
    return [
        _parse_panel_setting(text, file, file.relative_to(folder or file).as_posix())
        for file, text in texts.items()
        if any(_has_all_slots(text, task) for task in SLOTS)
    ]


def _has_all_slots(template: str, task: str) -> bool:
    return all(f"${{{slot}}}" in template for slot in SLOTS[task])


def _parse_panel_setting(text: str, path: Path, name: str) -> AuthorsSetting:
    config = require_item(parse_yaml(text, path), path, "")
    environment, agents = config.read_item("environment"), config.read_items("agents")
    if not agents:
        raise config.make_error("no agent", "at least one agent", "agents")
    order = environment.read_item("rule").read_item("order")
    if (kind := order.read("type", str)) not in ORDERS:
        raise order.make_error(repr(kind[:60]), " or ".join(ORDERS), "type")
    at_once = kind == "concurrent"
    summary = agents[0].read_item("memory_manipulator", optional=True).read_optional("summary_template", str)
    turns = environment.read("max_turns", int) // (1 if at_once else len(agents))
    roles = [agent.read_optional("role_description", str).strip() for agent in agents]
    debaters = [DebaterRole(agent.read("name", str), role) for agent, role in zip(agents, roles, strict=True)]
    llm = agents[0].read_item("llm", optional=True)
    return AuthorsSetting(
        file=name,
        debaters=tuple(debaters),
        strategy=("simultaneous_summarizer" if summary else "simultaneous") if at_once else "one_by_one",
        turns=max(turns, 1),
        template=agents[0].read("prompt_template", str),
        final={
            role: agent.read_optional("final_prompt_to_use", str) for role, agent in zip(debaters, agents, strict=True)
        },
        summary=summary,
        params={name: llm.read(name, kind) for name, kind in PARAMS.items() if llm.fields.get(name) is not None},
    )


def choose_settings(settings: Sequence[AuthorsSetting], mode: Any, task: str) -> dict[str, AuthorsSetting]:
    """Choose a panel configuration per aspect for a `paper:` mode; comparisons have a single aspect, ''.

    Return {} if an aspect lacks a configuration with the mode's strategy, roles and turns. If several configurations
    fit, prefer those for the paper's data, then those without roles, then the first by file name.
    """
    fitting = [setting for setting in settings if _has_all_slots(setting.template, task) and _fits_mode(setting, mode)]

    def rank_setting(setting: AuthorsSetting) -> tuple[bool, bool, str]:
        has_role = len(setting.debaters) == 1 and bool(setting.debaters[0].prompt)
        return f"/{SETS[task]}/" not in setting.file, has_role, setting.file

    # A folder in the path of a panel's file is named after the aspect that the panel scores.
    aspects = ASPECT_NAMES if task == "dialogues" else ("",)
    fitting.sort(key=rank_setting)
    by_aspect = {aspect: [one for one in fitting if not aspect or aspect in one.file.split("/")] for aspect in aspects}
    return {aspect: own[0] for aspect, own in by_aspect.items()} if all(by_aspect.values()) else {}


def _fits_mode(setting: AuthorsSetting, mode: Any) -> bool:
    if mode.strategy is None:
        return len(setting.debaters) == setting.turns == 1
    same_size = (setting.strategy, len(setting.debaters), setting.turns) == (mode.strategy, mode.roles, mode.turns)
    # Debaters have the same role if their roles' texts differ only in the debaters' names.
    roles = {role.prompt.replace(role.name, "") for role in setting.debaters}
    return same_size and (mode.roles == 1 or (len(roles) == 1) == mode.same_role)


@dataclass(frozen=True, slots=True)
class AspectPanels:
    """Judges each aspect of a dialogue response by a separate panel, as the authors do."""

    panels: tuple[Panel, ...]

    async def __call__(self, subject: JudgedInput, model: Model) -> Assessment:
        found = await wait_for_all(panel(subject, model) for panel in self.panels)
        by_debater: dict[str, list[Any]] = {}
        for ballot in (ballot for assessment in found for ballot in assessment.ballots):
            by_debater.setdefault(ballot.judge, []).append(ballot)
        ballots = [
            replace(own[0], scores=average_scores(ballot.scores for ballot in own)) for own in by_debater.values()
        ]
        opinion = Opinion(average_scores(assessment.opinion.scores for assessment in found))
        return Assessment(opinion, tuple(ballots), tuple(entry for one in found for entry in one.log))

    def list_prompt_sentences(self) -> Sequence[str]:
        return [sentence for panel in self.panels for sentence in panel.list_prompt_sentences()]
