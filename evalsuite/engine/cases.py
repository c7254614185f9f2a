"""Choose a benchmark's cases: their samples, repetitions, ids, order and fingerprints (see `core.types.Record`)."""

from __future__ import annotations

import hashlib
import random
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import TYPE_CHECKING, Any, TypeVar

from evalsuite.core.json_codec import digest, encode_message
from evalsuite.core.option_values import parse_shard
from evalsuite.core.redaction import redact
from evalsuite.core.types import Sample, has_canary_tag
from evalsuite.engine.bound import BoundBenchmark, check_samples
from evalsuite.engine.scoring import hash_scorers
from evalsuite.gateway.concealment import EPOCH_MARK
from evalsuite.journal.planned import PlannedCase
from evalsuite.samples.lazy import LazySample, LazySamples, SampleStream

if TYPE_CHECKING:
    from evalsuite.core.settings import Settings
    from evalsuite.sandbox import Sandbox

MOST_CASES = 100_000
"""Maximum cases per session, because pytest keeps all items of a session in memory, at about 7 KiB per case."""

LONGEST_ID = 80  # Maximum characters of the sample's id within a case's id.
SampleSource = Sample | LazySample
T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class CaseChoice:
    """How a benchmark's cases were chosen from all its samples."""

    samples: int = 0  # The number of samples that `--limit` draws.
    of: int | None = None  # Number of all samples; None if the samples are a stream that was not read to its end.
    # Number of this machine's cases that were never made, because -k excludes them or another part runs them.
    left_out: int = 0


@dataclass(frozen=True, eq=False, slots=True)
class Case:
    """One pytest item: a sample of a benchmark in one epoch."""

    bound: BoundBenchmark  # The benchmark in this run.
    source: SampleSource  # The sample itself, or its id and the function that makes it.
    epoch: int  # The repetition, counted from 1.
    beyond: bool = False  # Whether the sample is beyond `--limit`, so that the case runs only with `--until-decided`.
    nodeid: str = ""  # The item's node id if the test has parameters besides the case; otherwise empty.
    choice: CaseChoice = CaseChoice()  # How the cases of the benchmark's function were chosen.
    # Whether the case is made only because pytest would skip a test function without cases in this session.
    placeholder: bool = False

    @property
    def sample(self) -> Sample:
        """The sample, made on first use."""
        return self.source if isinstance(self.source, Sample) else self.source.sample

    @property
    def id(self) -> str:
        """The node id of the case's pytest item, without further parameters of the test."""
        return f"{self.bound.nodeid}[{self.short_id}]"

    @property
    def short_id(self) -> str:
        """The part of the node id that pytest shows in brackets."""
        return make_short_id(self.source.id, self.epoch if self.bound.epochs > 1 else None)

    @property
    def storage_scope(self) -> str:
        """The key under which the case's answers and tool calls are stored: its node id with a mark at the epoch."""
        name, id_ = self.nodeid or self.id, make_short_id(self.source.id, self.epoch)
        if self.bound.epochs == 1:
            return name
        # Also match the id with non-ASCII characters escaped, because pytest shows it in this form.
        ids = "|".join(re.escape(text) for text in (id_, id_.encode("unicode_escape").decode("ascii")))
        suffix = f"-e{self.epoch}"
        return self.bound.nodeid + re.sub(
            rf"(?<=[\[-])({ids})(?=[]-])",
            lambda found: found[0].removesuffix(suffix) + EPOCH_MARK + suffix,
            name.removeprefix(self.bound.nodeid),
            count=1,
        )

    def iterate_sandboxes(self) -> Iterator[Sandbox]:
        """Yield the sandboxes in which the case's solver and scorers run programs."""
        for part in (self.bound.solver, *self.bound.scorers):
            sandbox_for = getattr(part, "sandbox_for", None)
            if sandbox_for is not None and (sandbox := sandbox_for(self.sample)) is not None:
                yield sandbox

    def make_plan_row(self, case_name: str, settings: Settings, model: str, *, selected: bool = True) -> PlannedCase:
        """Make the case's row in the plan, which the journal stores before the case runs."""
        bound, sample = self.bound, self.sample
        fingerprints = compute_planned_fingerprints(self, settings, model)
        planned = case_name, bound.name, sample.id, self.epoch, dict(sample.tags)
        return PlannedCase(*planned, bound.dataset.source, bound.place, selected, fingerprints, self.beyond)

    def add_parameters(self, parameters: Mapping[str, object], nodeid: str) -> Case:
        """Return the case with a test's parameters in its sample's metadata; texts and numbers also become tags."""
        plain = {name: str(value) for name, value in parameters.items() if isinstance(value, str | int | float)}
        tags, metadata = {**self.sample.tags, **plain}, {**self.sample.metadata, **parameters}
        return replace(self, source=replace(self.sample, tags=tags, metadata=metadata), nodeid=nodeid)


class ShardAssigner:
    """Assigns samples to shards and parts in the order of collection, so that a session makes only its own items.

    A sample's epochs stay together, because some benchmarks decide over all epochs of a sample. Filters and orders that
    are applied later (-k, -m, plugins) do not change the shards, which together cover each sample once.

    Args:
        shard: K/N, the K-th of N shards; None means all samples.
        part: the part of the shard that this session runs, from 1; None means the whole shard.

    Attributes:
        counted: the number of cases that were assigned so far, in all parts of the shard.
    """

    def __init__(self, shard: str | None, part: int | None = None) -> None:
        self._shard, self._shards = parse_shard(shard) if shard else (1, 1)
        self._part, self.counted, self._assigned = part, 0, 0
        # The position of each sample of a pooled benchmark, so that functions with the same sample get the same shard.
        self._pooled: dict[tuple[str, str], int] = {}

    def assign_to_shard(self, benchmark: str, sample: str, *, pool: bool) -> bool:
        """Assign the next sample to a shard, and tell whether this machine runs it."""
        if self._shards == 1:
            return True
        number = self._pooled.setdefault((benchmark, sample), self._assigned) if pool else self._assigned
        self._assigned += number == self._assigned
        return number % self._shards == self._shard - 1

    def assign_to_part(self, cases: int) -> bool:
        """Assign this number of cases to the current part, and tell whether this session runs the part."""
        part = self.counted // MOST_CASES + 1
        self.counted += cases
        return self._part in {None, part}


def make_cases(
    bound: BoundBenchmark,
    settings: Settings,
    assignment: ShardAssigner,
    may_be_selected: Callable[[str], bool] | None = None,
) -> list[Case]:
    """Make a benchmark's cases for this session, in the dataset's order.

    At least one case of a benchmark is made, because pytest skips a function without cases.

    With `--until-decided`, samples beyond the limit also become cases, unless the benchmark runs in several modes. With
    several modes, each chosen question is asked in every mode, so cases beyond the limit would not be a random sample.
    """
    limit, goes_on = settings.limit, settings.until_decided
    every = _read_needed_samples(bound, None if goes_on else limit)
    # Keep all canaries (fixed answers that test the judge) despite the limit, because they need no answer of the model.
    limit = None if every and all(isinstance(each, Sample) and has_canary_tag(each.tags) for each in every) else limit
    samples = choose_samples(every, limit, f"{bound.setup.seed} {bound.name}")
    chosen = {sample.id for sample in samples}
    if goes_on and len({_get_id_without_mode(sample) for sample in every}) == len(every):
        samples = every
    # Assign every sample to a shard, including samples that -k excludes.
    drawn, is_whole = len(samples), limit is None or not isinstance(bound.dataset.samples, SampleStream)
    pool = bound.declaration.pool
    own = [sample for sample in samples if assignment.assign_to_shard(bound.name, sample.id, pool=pool)]
    kept: list[tuple[SampleSource, int]] = []
    for sample in own:
        epochs: Sequence[int] = range(1, bound.epochs + 1)
        if may_be_selected is not None:
            epochs = [epoch for epoch in epochs if may_be_selected(Case(bound, sample, epoch).short_id)]
        if epochs and assignment.assign_to_part(len(epochs)):
            kept += [(sample, epoch) for epoch in epochs]
    made = kept or [(sample, 1) for sample in (own or samples)[:1]]
    choice = CaseChoice(drawn, len(every) if is_whole else None, len(own) * bound.epochs - len(made))
    return [Case(bound, one, epoch, one.id not in chosen, choice=choice, placeholder=not kept) for one, epoch in made]


def _read_needed_samples(bound: BoundBenchmark, limit: int | None) -> Sequence[SampleSource]:
    """Read only as many samples as are needed to choose `limit` of them."""
    samples = bound.dataset.samples
    if isinstance(samples, LazySamples):
        return samples.list_samples()
    if not isinstance(samples, SampleStream):
        return samples
    read = samples.read_first_samples(limit)
    check_samples(bound.name, read)
    return read


def choose_samples(samples: Sequence[SampleSource], limit: int | None, seed: str) -> Sequence[SampleSource]:
    """Choose at most `limit` samples and keep their order; a larger limit keeps the choice and adds samples.

    As far as the limit allows, all modes get the same questions, so that modes can be compared.
    """
    if limit is None or limit >= len(samples):
        return samples
    questions: dict[str, list[int]] = {}
    for index, sample in enumerate(samples):
        questions.setdefault(_get_id_without_mode(sample), []).append(index)
    shuffled = random.Random(seed).sample(list(questions.values()), len(questions))  # noqa: S311 - not a secret
    chosen = [index for question in shuffled for index in question][:limit]
    return [samples[index] for index in sorted(chosen)]


def _get_id_without_mode(sample: SampleSource) -> str:
    # If a benchmark runs in several modes, the id of each sample ends with the mode.
    if not isinstance(sample, Sample):
        return sample.id
    return sample.id.removesuffix(sample.tags.get("mode", "").replace(":", "-"))


def make_short_id(sample: str, epoch: int | None) -> str:
    """Make a short, stable id without characters that are special to pytest or a shell."""
    text = re.sub(r"[^\w.,+=@%|-]+", "-", sample)
    if len(text) > LONGEST_ID or text != sample:
        # Append a hash, because cutting or replacing characters could make two ids equal.
        short_hash = hashlib.sha256(sample.encode("utf-8", "replace")).hexdigest()[:6]
        text = f"{text[: LONGEST_ID - 7]}-{short_hash}"
    return text if epoch is None else f"{text}-e{epoch}"


def order_items(items: Sequence[T], get_case: Callable[[T], Case | None], settings: Settings, workers: int) -> list[T]:
    """Order items; if the run may end early, put plain tests first, because all must run, and shuffle the cases.

    The items are shared among `workers` processes.
    """

    def make_order_key(item: T) -> tuple[int, bool]:
        case = get_case(item)
        return (case.epoch, case.beyond) if case is not None else (0, False)

    ordered = list(items)
    if settings.can_end_early:
        random.Random(settings.seed).shuffle(ordered)  # noqa: S311 - not a secret
        ordered.sort(key=lambda item: get_case(item) is not None)
    if settings.until_decided:
        # Put new samples before further epochs, because new samples are more informative. Within an epoch, put the
        # samples that --limit chose first.
        ordered.sort(key=make_order_key)
        from evalsuite.decisions.early_stops import reorder_for_workers

        ordered = list(reorder_for_workers(ordered, workers))
    return ordered


def compute_planned_fingerprints(case: Case, settings: Settings, model: str) -> dict[str, str]:
    """Compute the fingerprints that are known before a case runs."""
    shown = case.sample.input
    environments = sorted({sandbox.environment.fingerprint for sandbox in case.iterate_sandboxes()})
    programs = environments[0] if len(environments) == 1 else digest(environments)
    return {
        "input": digest(shown if isinstance(shown, str) else [encode_message(message) for message in shown]),
        "target": digest(case.sample.target),
        **_compute_shared_fingerprints(case.bound, settings, model),
        **({"programs": programs} if environments else {}),
    }


@lru_cache(maxsize=64)
def _compute_shared_fingerprints(bound: BoundBenchmark, settings: Settings, model: str) -> Mapping[str, str]:
    asked: dict[str, tuple[Any, ...]] = {
        "model": (model, settings.model_base_url, settings.model_params),
        "judge": (settings.judge_model, settings.judge_base_url, settings.judge_params),
        "user": (settings.user_model, settings.user_base_url),
    }
    hashes = {
        role: digest([name, redact(base_url or ""), *params])
        for role, (name, base_url, *params) in asked.items()
        if name or role == "model"
    }
    if bound.faults:
        hashes["faults"] = digest([[str(fault) for fault in bound.faults.faults], settings.seed])
    return {"scorers": hash_scorers(bound.scorers), **hashes}
