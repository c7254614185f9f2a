"""Cases: a benchmark's test function becomes one item per sample and epoch."""

from __future__ import annotations

import hashlib
import random
import re
from dataclasses import dataclass
from typing import TYPE_CHECKING

from evalsuite.core.types import Sample
from evalsuite.engine.bound import Bound, bind, check_ids
from evalsuite.plugin.collection.keywords import any_case, keyword_filter
from evalsuite.plugin.marks import FIXTURE
from evalsuite.results.judge_labels import CANARY
from evalsuite.samples.lazy import LazySamples, SampleStream, Unmade

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    import pytest

    from evalsuite.core.settings import Settings
    from evalsuite.plugin.collection.decorator import Declaration

LONGEST_ID = 80

SampleSource = Sample | Unmade


@dataclass(frozen=True, eq=False)
class Case:
    """One pytest item: sample, benchmark and epoch.

    Attributes:
        bound: the benchmark in this run.
        source: what is asked, or its id and how it is made.
        epoch: from 1.
        beyond: whether `--limit` does not choose the sample, and only `--until-decided` asks it.
    """

    bound: Bound
    source: SampleSource
    epoch: int
    beyond: bool = False

    @property
    def sample(self) -> Sample:
        """What is asked."""
        return self.source if isinstance(self.source, Sample) else self.source.sample

    @property
    def id(self) -> str:
        """The node id of its pytest item, unless the test is parametrized further."""
        epoch = self.epoch if self.bound.epochs > 1 else None
        return f"{self.bound.nodeid}[{case_id(self.source.id, epoch)}]"


def make_cases(
    bound: Bound,
    limit: int | None,
    is_mine: Callable[[str, str], bool],
    *,
    goes_on: bool = False,
    may_match: Callable[[str], bool] = lambda _id: True,
) -> tuple[list[Case], list[str]]:
    """The cases of a benchmark on this machine, in the dataset's order, with their ids.

    At least one, as pytest takes a function without any case for one that is to be skipped.

    Args:
        bound: the benchmark.
        limit: how many samples are chosen; None for all.
        is_mine: whether a benchmark's sample is dealt to this machine.
        goes_on: whether the samples that the limit leaves out are cases, too, for when it is reached. Not in several
            modes at once: there the limit chooses questions, which are asked in every mode, so that the next case
            would not be a random one of those left.
        may_match: whether -k may keep a case of this id.
    """
    every = _sources(bound, None if goes_on else limit)
    # Fewer canaries would say less about the judge, and they cost no call to the model.
    limit = None if every and all(_is_canary(source) for source in every) else limit
    samples = choose(every, limit, f"{bound.setup.seed} {bound.name}")
    chosen = {sample.id for sample in samples}
    if goes_on and len({_whatever_the_mode(sample) for sample in every}) == len(every):
        samples = every
    # All are dealt, each in its turn, whatever -k says.
    samples = [sample for sample in samples if is_mine(bound.name, sample.id)] or samples[:1]
    asked = [
        (sample, epoch, case_id(sample.id, epoch if bound.epochs > 1 else None))
        for sample in samples
        for epoch in range(1, bound.epochs + 1)
    ]
    asked = [entry for entry in asked if may_match(entry[-1])] or asked[:1]
    cases = [Case(bound, sample, epoch, sample.id not in chosen) for sample, epoch, _ in asked]
    return cases, [id_ for *_, id_ in asked]


def _sources(bound: Bound, limit: int | None) -> Sequence[SampleSource]:
    """The samples as far as they are needed to choose from."""
    samples = bound.dataset.samples
    if isinstance(samples, LazySamples):
        return samples.unmade()
    if not isinstance(samples, SampleStream):
        return samples
    read = samples.first(limit)
    check_ids(bound.name, read)
    return read


def _is_canary(source: SampleSource) -> bool:
    return isinstance(source, Sample) and CANARY in source.tags


def choose(samples: Sequence[SampleSource], limit: int | None, seed: str) -> Sequence[SampleSource]:
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


def _whatever_the_mode(sample: SampleSource) -> str:
    """The sample's id without the mode, which ends it if a benchmark runs in several modes."""
    if not isinstance(sample, Sample):
        return sample.id
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
    # A resumed run notes the cases that it leaves out.
    may_match = any_case if settings.resume else keyword_filter(metafunc)
    goes_on = settings.until_decided
    cases, ids = make_cases(bound, settings.limit, is_mine, goes_on=goes_on, may_match=may_match)
    metafunc.parametrize(FIXTURE, cases, ids=ids, indirect=True)
