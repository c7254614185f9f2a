"""One solver for all modes: each sample says by its tag `mode` how it is to be solved."""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import partial
from typing import TYPE_CHECKING, Any

from evalsuite.benchmarks.treb import prompts
from evalsuite.benchmarks.treb.answers import answer_in_words
from evalsuite.benchmarks.treb.options import TrebOptions
from evalsuite.benchmarks.treb.subtasks import COLUMN_OF, TCOT
from evalsuite.benchmarks.treb.table_cache import TableCache
from evalsuite.core.shortening import beginning
from evalsuite.core.threads import in_thread
from evalsuite.core.types import Message, Transcript
from evalsuite.sandbox import Sandbox
from evalsuite.sandbox import TableFile as Sent
from evalsuite.solvers.interleaved import interleaved
from evalsuite.solvers.program_of_thought import program_of_thought

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from evalsuite.core.protocols import Model, Setup, Solver
    from evalsuite.core.types import Sample

ROUNDS = 3
CHARACTERS_A_TOKEN = 4  # of English; half the context in tokens is then this many times as many characters


@dataclass(frozen=True, slots=True)
class InWords:
    """TCoT: one call with the tables as text.

    Attributes:
        limit: characters of each table's text.
        params: generation parameters.
        cache: of the tables.
    """

    limit: int
    params: Mapping[str, Any] = field(default_factory=dict)
    cache: TableCache = field(default_factory=TableCache)

    async def __call__(self, sample: Sample, model: Model) -> Transcript:
        """Asks once; the transcript's fact `json` says whether the answer came in the form asked for."""
        prompt = prompts.in_words(sample, await in_thread(self._tables, sample))
        completion = await model.chat(prompt, **self.params)
        answer, facts = completion.text.strip(), {"finish": completion.finish_reason}
        if prompts.asks_for_json(sample):
            answer, is_json = answer_in_words(completion.text)
            facts |= {"json": "found" if is_json else "missing"}
        messages = (*prompt, Message("assistant", completion.text))
        return Transcript(answer, messages, completion.reasoning, facts=facts)

    def _tables(self, sample: Sample) -> list[str]:
        mode = sample.tags["mode"]
        form = "html" if mode == "tcot_html" else "markdown"
        return [
            prompts.table_text(self.cache.read(source), source[form], mode, self.limit)
            for source in sample.metadata["tables"]
        ]


@dataclass(frozen=True, slots=True)
class Reasoner:
    """Solves each sample in its mode.

    Attributes:
        modes: a solver for each tag `mode`.
        sandbox: where programs run; shared by the modes that have some.
    """

    modes: Mapping[str, Solver]
    sandbox: Sandbox

    async def __call__(self, sample: Sample, model: Model) -> Transcript:
        """Solves one sample.

        Raises:
            DatasetError: its table is no table.
            SandboxError: see `program_of_thought`.
            ModelError: a call failed for good.
        """
        return await self.modes[sample.tags["mode"]](sample, model)

    def sandbox_for(self, sample: Sample) -> Sandbox | None:
        """Where the sample's programs would run; None in TCoT, where there are none."""
        return self.sandbox if COLUMN_OF[sample.tags["mode"]] != TCOT else None

    async def aclose(self) -> None:
        """Ends the sandbox."""
        await self.sandbox.aclose()


def solver(setup: Setup) -> Reasoner:
    """The solver of a run."""
    options = TrebOptions.of(setup)
    half = options.context // 2
    params: dict[str, Any] = {"max_tokens": options.max_tokens, "temperature": options.temperature}
    cache = TableCache()
    shared: dict[str, Any] = {"tables": partial(tables_of, cache=cache), "timeout": options.timeout, **params}
    # A program that imports scipy.stats, as tests of hypotheses do, is otherwise half a second slower.
    sandbox, words = Sandbox(preload=("numpy", "pandas", "scipy.stats")), InWords(half, params, cache)
    program = program_of_thought(prompt=_clipping(prompts.with_program, half), sandbox=sandbox, **shared)
    rounds = interleaved(
        rounds=ROUNDS, prompt=_clipping(prompts.with_rounds, half), sandbox=sandbox, **shared
    )
    modes: dict[str, Solver] = {
        "tcot": words,
        "tcot_markdown": words,
        "tcot_html": words,
        "pot": program,
        "icot": rounds,
    }
    return Reasoner(modes, sandbox)


def tables_of(sample: Sample, cache: TableCache) -> dict[str, Sent]:
    """The tables for the sandbox: `df`, and `df2`, `df3`, ... where there are several.

    Raises:
        DatasetError: one is no table.
    """
    sources = sample.metadata["tables"]
    return {
        f"df{number}" if number > 1 else "df": Sent(cache.read(source).csv().encode(), source["header_rows"])
        for number, source in enumerate(sources, 1)
    }


def _clipping(
    prompt: Callable[[Sample, str], list[Message]], tokens: int
) -> Callable[[Sample, str], list[Message]]:
    """The same prompt with no more than about so many tokens on the tables, which the paper leaves open."""
    limit = CHARACTERS_A_TOKEN * tokens
    return lambda sample, described: prompt(sample, beginning(described, limit))
