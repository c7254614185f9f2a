"""ToolEyes' solver: selects the tools, the user and the protocol of each sample."""

import json
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

from evalsuite.benchmarks.tool_eyes.dataset import RELEASED_MODES, ToolEyesOptions
from evalsuite.benchmarks.tool_eyes.released import ReleasedReAct, read_prompts
from evalsuite.core.errors import SettingsError
from evalsuite.core.keywords import read_options
from evalsuite.core.protocols import Model, Setup
from evalsuite.core.types import Message, Sample, Transcript
from evalsuite.solvers.episode import PARAMETERS, ToolLoop
from evalsuite.solvers.tool_protocols import react, tool_loop
from evalsuite.tools import simulated
from evalsuite.tools.execution import ASK_TO_USER, FINISH, Executor, Tool, ToolDocument
from evalsuite.tools.live import LiveExecutor
from evalsuite.tools.worlds import World


def read_example_episodes() -> Iterator[tuple[Message, ...]]:
    """Read the shipped examples; an observation follows each turn of the model except the last."""
    path = Path(__file__).parent / "data" / "examples.json"
    for example in json.loads(path.read_text(encoding="utf-8")):
        messages = [Message("user", example["request"])]
        for turn in example["turns"]:
            said = f"Thought: {turn['thought']}\nAction: {turn['action']}\nAction Input: {json.dumps(turn['input'])}"
            messages.append(Message("assistant", said))
            if turn["observation"]:
                messages.append(Message("user", f"Observation: {turn['observation']}"))
        yield tuple(messages)


class ToolEyesSolver:
    """Runs each sample in its mode; each episode has its own instances of tools and its own position in a recording."""

    def __init__(self, setup: Setup) -> None:
        self.options, self.data = read_options("ToolEyes", ToolEyesOptions, setup.args), setup.data
        # Without a judge, the model under test also simulates the tools and the user; records and the report say so.
        kept = Path(self.options.observations) if self.options.observations else setup.reports
        self.simulator = simulated.SimulatingModel(
            setup.judge or setup.model, setup.judge_base_url if setup.judge else None, simulated.ObservationStore(kept)
        )
        self.executor, self.user = self._choose_executor_and_user(has_shipped_tools=setup.data is None)
        self.loops = {mode: self._make_tool_loop(mode) for mode in setup.modes}

    async def __call__(self, sample: Sample, model: Model) -> Transcript:
        transcript = await self.loops[sample.tags["mode"]](sample, model)
        controls = {ASK_TO_USER.name, FINISH.name}
        facts: dict[str, Any] = {"tools": sum(each["name"] not in controls for each in sample.metadata["documents"])}
        if any(name.startswith("simulated") for name in transcript.facts["executors"]):
            facts["simulator"] = self.simulator.model
        return replace(transcript, facts={**transcript.facts, **facts})

    async def aclose(self) -> None:
        self.simulator.library.close()

    def _choose_executor_and_user(
        self, *, has_shipped_tools: bool
    ) -> tuple[Callable[[Sample], Executor] | None, simulated.User]:
        """Return a function that makes a sample's executor (None for tools in Python), and the simulated user."""
        kind = self.options.executor or ("python" if has_shipped_tools else "simulated")
        if has_shipped_tools != (kind == "python"):
            raise SettingsError(
                f"tool_eyes was given executor={kind!r}: the shipped tools are Python, the published ones "
                "(--data) are simulated, recorded or live"
            )
        match kind:
            case "python":
                return None, simulated.ScriptedUser()
            case "simulated":
                return (lambda _: self.simulator), self.simulator
            case "recorded":
                recording = simulated.Recording(_require_option_folder(self.options.recording, "recording", kind))
                return (lambda sample: simulated.RecordedExecutor(recording, str(sample.input))), recording
            case "live":
                folder = _require_option_folder(self.options.library, "library", kind)
                live = LiveExecutor(folder, self.options.allow_network, bool(self.options.allow_code))
                return (lambda _: live), self.simulator
        raise SettingsError(f"tool_eyes has no executor {kind!r}; choose simulated, recorded or live")

    def _make_tool_loop(self, mode: str) -> ToolLoop:
        options = self.options
        shared: dict[str, Any] = {
            "user": self.user,
            "max_turns": options.max_turns,
            "patience": options.patience,
            "observation_limit": options.observation_limit,
        }
        max_tokens = options.max_tokens or (1024 if mode in RELEASED_MODES else 512)
        # Set `outside=False` (no effects outside of the instance), because the shipped tools store all state in it.
        tools = [World(self.make_tools, outside=False)]
        if mode in RELEASED_MODES:
            prompts = read_prompts(self.data)
            system = prompts.zero_shot if mode == "released" else prompts.five_shot
            protocol = ReleasedReAct(system, prompts.reminder)
            return ToolLoop(protocol, tools, **shared, params={**PARAMETERS, "max_tokens": max_tokens})
        if mode == "functions":
            return tool_loop(tools, **shared, max_tokens=max_tokens)
        examples = tuple(read_example_episodes()) if mode == "paper_5shot" else ()
        return react(tools, examples=examples, **shared, max_tokens=max_tokens)

    def make_tools(self, sample: Sample) -> object:
        subject = sample.metadata["subject"]
        if self.executor is None:
            from evalsuite.benchmarks.tool_eyes.toolbox import SUBJECTS

            return SUBJECTS[subject](sample)
        executor = self.executor(sample)
        return [Tool(ToolDocument(**document, origin=subject), executor) for document in sample.metadata["documents"]]


def _require_option_folder(folder: str | None, option: str, executor: str) -> Path:
    if folder is None:
        raise SettingsError(f"tool_eyes with executor={executor!r} needs {option}=<folder>")
    return Path(folder)
