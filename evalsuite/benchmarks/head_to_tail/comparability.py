"""Checks whether a run's questions are similar enough to the paper's for its results to be compared.

The paper's own questions were never published. What can match is the mix (Table 2), which is the templates, the
number of questions of each domain and equal numbers of head, torso and tail, and the prompt. `evalsuite build
head-to-tail --mix paper` makes such questions.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from evalsuite.benchmarks.head_to_tail.buckets import BUCKETS

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from evalsuite.results.tally import Tally

# The judge and the mode of the paper's main results.
JUDGE, MODE = "gpt-3.5-turbo-0301", "paper"


@dataclass(frozen=True, slots=True)
class DomainMix:
    """What the paper asks of a domain (Table 2).

    Attributes:
        templates: how many kinds of question.
        questions: how many questions, over head, torso and tail.
        leeway: how far a build may deviate, as a share of these numbers.
    """

    templates: int
    questions: int
    leeway: float = 0.05


# The paper's DBpedia templates, drafted with ChatGPT, were not published; the 435 published ones are another model's.
PAPER_MIX = {
    "open": DomainMix(393, 9132, leeway=0.12),
    "movie": DomainMix(13, 3093),
    "book": DomainMix(4, 3000),
    "academics": DomainMix(13, 2946),
}


def domain_differences(asked: Tally, domain: str) -> list[str]:
    """How the questions of one domain differ from the paper's; empty if they do not.

    Args:
        asked: the cases of a run in one mode, those that are errors included.
        domain: one of `PAPER_MIX`.
    """
    part, mix = asked.where(domain=domain), PAPER_MIX[domain]
    questions = {row.sample: row.tags for row in part}
    if not questions:
        return [f"nothing is asked about {domain}"]
    return list(_mix_differences(list(questions.values()), domain, mix))


def _mix_differences(tags: Sequence[Mapping[str, str]], domain: str, mix: DomainMix) -> Iterator[str]:
    templates = len({each.get("template") for each in tags})
    if _is_off(templates, mix.templates, mix.leeway):
        yield f"{templates:,} templates of {domain} questions instead of {mix.templates:,}"
    if _is_off(len(tags), mix.questions, mix.leeway):
        yield f"{len(tags):,} {domain} questions instead of {mix.questions:,}"
    shares = [sum(each.get("bucket") == bucket for each in tags) for bucket in BUCKETS]
    if max(shares) - min(shares) > mix.leeway * max(shares):
        counts = ", ".join(f"{count:,} {bucket}" for count, bucket in zip(shares, BUCKETS, strict=True))
        yield f"{domain} questions are {counts} instead of equally many"


def _is_off(count: int, wanted: int, leeway: float) -> bool:
    return abs(count - wanted) > leeway * wanted


def prompt_differences(asked: Tally) -> list[str]:
    """How the prompt differs from the paper's; empty if it does not."""
    mode = next((row.tags.get("mode", "") for row in asked), "")
    return [] if mode == MODE else [f"asked by the mode {mode or 'of its own'}, not by the paper's Prompt 3"]


def judge_differences(judge: str | None) -> list[str]:
    """How the judge differs; this does not prevent a comparison, since the paper's judge has been retired."""
    if judge is None:
        return ["decided by exact match, and compared with the paper's exact match"]
    return [] if judge == JUDGE else [f"judged by {judge}, not by {JUDGE}"]
