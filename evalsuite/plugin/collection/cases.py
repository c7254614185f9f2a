"""Cases: a benchmark's test function becomes one item per sample and epoch."""

from __future__ import annotations

import hashlib
import random
import re
from dataclasses import dataclass
from typing import TYPE_CHECKING

from evalsuite.plugin.collection.bound import Bound, bind
from evalsuite.plugin.marks import FIXTURE
from evalsuite.results.judge_labels import CANARY

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    import pytest

    from evalsuite.plugin.collection.decorator import Declaration
    from evalsuite.settings import Settings
    from evalsuite.types import Sample

LONGEST_ID = 80


@dataclass(frozen=True, eq=False)
class Case:
    """One pytest item: sample, benchmark and epoch.

    Attributes:
        bound: the benchmark in this run.
        sample: what is asked.
        epoch: from 1.
        beyond: whether `--limit` does not choose the sample, and only `--until-decided` asks it.
    """

    bound: Bound
    sample: Sample
    epoch: int
    beyond: bool = False

    @property
    def id(self) -> str:
        """The node id of its pytest item, unless the test is parametrized further."""
        epoch = self.epoch if self.bound.epochs > 1 else None
        return f"{self.bound.nodeid}[{case_id(self.sample.id, epoch)}]"


def make_cases(
    bound: Bound, limit: int | None, is_mine: Callable[[str, str], bool], *, goes_on: bool = False
) -> tuple[list[Case], list[str]]:
    """The cases of a benchmark on this machine, in the dataset's order, with their ids.

    Args:
        bound: the benchmark.
        limit: how many samples are chosen; None for all.
        is_mine: whether a benchmark's sample is dealt to this machine.
        goes_on: whether the samples that the limit leaves out are cases, too, for when it is reached. Not in several
            modes at once: there the limit chooses questions, which are asked in every mode, so that the next case
            would not be a random one of those left.
    """
    every = bound.dataset.samples
    # Fewer canaries would say less about the judge, and they cost no call to the model.
    limit = None if every and all(CANARY in sample.tags for sample in every) else limit
    samples = choose(every, limit, f"{bound.setup.seed} {bound.name}")
    chosen = {sample.id for sample in samples}
    if goes_on and len({_whatever_the_mode(sample) for sample in every}) == len(every):
        samples = every
    # All are dealt, each in its turn; pytest takes a function without any case for one that is to be skipped.
    samples = [sample for sample in samples if is_mine(bound.name, sample.id)] or samples[:1]
    cases = [
        Case(bound, sample, epoch, sample.id not in chosen)
        for sample in samples
        for epoch in range(1, bound.epochs + 1)
    ]
    ids = [case_id(case.sample.id, case.epoch if bound.epochs > 1 else None) for case in cases]
    return cases, ids


def choose(samples: Sequence[Sample], limit: int | None, seed: str) -> Sequence[Sample]:
    """At most `limit` samples, in their order; a larger limit keeps what a smaller one chose.

    With several modes the same questions are chosen for each, as far as the limit allows, to compare the modes on them.
    """
    if limit is None or limit >= len(samples):
        return samples
    questions: dict[str, list[int]] = {}
    for index, sample in enumerate(samples):
        questions.setdefault(_whatever_the_mode(sample), []).append(index)
    shuffled = random.Random(seed).sample(list(questions.values()), len(questions))  # noqa: S311 - a choice, no secret
    chosen = [index for question in shuffled for index in question][:limit]
    return [samples[index] for index in sorted(chosen)]


def _whatever_the_mode(sample: Sample) -> str:
    """The sample's id without the mode, which ends it if a benchmark runs in several modes."""
    return sample.id.removesuffix(sample.tags.get("mode", "").replace(":", "-"))


def case_id(sample: str, epoch: int | None) -> str:
    """A short, stable id without characters that mean something to pytest or a shell."""
    text = re.sub(r"[^\w.,+=@%|-]+", "-", sample)
    if len(text) > LONGEST_ID or text != sample:
        # Cutting or replacing characters must not make two ids equal.
        digest = hashlib.sha256(sample.encode("utf-8", "replace")).hexdigest()[:6]
        text = f"{text[: LONGEST_ID - 7]}-{digest}"
    return text if epoch is None else f"{text}-e{epoch}"


def generate(
    metafunc: pytest.Metafunc,
    declaration: Declaration,
    settings: Settings,
    model: str,
    is_mine: Callable[[str, str], bool],
) -> None:
    """Gives a benchmark's function its cases on this machine; one of another's, where it has none here.

    Raises:
        EvalsuiteError: samples or modes cannot be had.
    """
    bound = bind(declaration, settings, model, metafunc.config.rootpath, metafunc.definition.nodeid)
    bound.make()
    cases, ids = make_cases(bound, settings.limit, is_mine, goes_on=settings.until_decided)
    metafunc.parametrize(FIXTURE, cases, ids=ids, indirect=True)
