"""Describe the published formats of further sets of comparisons.

The sets are MT-Bench's human judgements (Zheng et al., arXiv 2306.05685), LLMBar (Zeng et al., arXiv 2310.07641),
JudgeBench (Tan et al., arXiv 2410.12784) and RewardBench (Lambert et al., arXiv 2403.13787).
"""

from __future__ import annotations

from dataclasses import replace
from hashlib import sha256
from typing import TYPE_CHECKING, Any

from evalsuite.core.errors import DatasetError
from evalsuite.samples.files import SampleFields
from evalsuite.samples.published import FILE, PublishedSet, choose, read_text_field

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping
    from pathlib import Path

    from evalsuite.core.types import Sample
    from evalsuite.samples.files import Field


def _list_fields(*names: str) -> Callable[[Mapping[str, Any]], list[str]]:
    def read_texts(item: Mapping[str, Any]) -> list[str]:
        return [read_text_field(item, name) for name in names]

    return read_texts


def _pair(files: tuple[str, ...], question: Field, answers: Field, verdict: Field, **more: Field) -> PublishedSet:
    """Describe a set; `more` may have the fields `category`, `cluster` and `systems`."""
    systems = {"systems": more.pop("systems")} if "systems" in more else {}
    return PublishedSet(files, SampleFields(question, verdict, None, more, {"answers": answers, **systems}))


def _read_turns(item: Mapping[str, Any], conversation: str, role: str) -> list[str]:
    """List the messages of one role in an MT-Bench conversation, up to the judged turn."""
    turns = [read_text_field(said, "content") for said in item[conversation] if said["role"] == role]
    if item["turn"] not in (1, 2) or len(turns) < item["turn"]:
        raise ValueError(f"turn {item['turn']!r:.20} of {len(turns)}")
    return turns[: item["turn"]]


def _join_turns(turns: list[str], titles: tuple[str, str]) -> str:
    if len(turns) == 1:
        return turns[0]
    return "\n\n".join(f"{title}\n{turn}" for title, turn in zip(titles, turns, strict=True))


def _read_question(item: Mapping[str, Any]) -> str:
    titles = ("The first question:", "The second question, asked after the first was answered:")
    return _join_turns(_read_turns(item, "conversation_a", "user"), titles)


def _read_answers(item: Mapping[str, Any]) -> list[str]:
    titles = ("The answer to the first question:", "The answer to the second question:")
    both = [_read_turns(item, name, "assistant") for name in ("conversation_a", "conversation_b")]
    return [_join_turns(turns, titles) for turns in both]


def _name_folder(item: Mapping[str, Any]) -> str:
    """Return the path of LLMBar's subset, such as `Adversarial/Manual`."""
    return str(item[FILE]).rpartition("/")[0] or "all"


def _place(chosen: str, rejected: str) -> Callable[[Mapping[str, Any]], list[str]]:
    """Put RewardBench's chosen answer first or second, by a hash of the prompt and the answer."""

    def read_in_order(item: Mapping[str, Any]) -> list[str]:
        values = [read_text_field(item, name) for name in (chosen, rejected)]
        return values if _read_better(item) == "first" else values[::-1]

    return read_in_order


def _read_better(item: Mapping[str, Any]) -> str:
    text = f"{read_text_field(item, 'prompt')}\n{read_text_field(item, 'chosen')}"
    return ("first", "second")[sha256(text.encode("utf-8", "surrogatepass")).digest()[0] % 2]


PAIR_SETS = {
    "mt_bench": _pair(
        ("**/human*",),
        _read_question,
        _read_answers,
        choose("winner", {"model_a": "first", "model_b": "second", "tie": "tie", "tie (bothbad)": "tie"}),
        category=choose("turn", {1: "first turn", 2: "second turn"}),
        cluster="question_id",
        systems=_list_fields("model_a", "model_b"),
    ),
    "llmbar": _pair(
        ("LLMBar/**/dataset.json", "**/dataset.json"),
        "input",
        _list_fields("output_1", "output_2"),
        choose("label", {1: "first", 2: "second"}),
        category=_name_folder,
    ),
    "judgebench": _pair(
        ("**/*.jsonl", "**/*.parquet"),
        "question",
        _list_fields("response_A", "response_B"),
        choose("label", {"A>B": "first", "B>A": "second"}),
        category="source",
    ),
    "rewardbench": _pair(
        ("**/filtered*", "*.jsonl"),
        "prompt",
        _place("chosen", "rejected"),
        _read_better,
        category="subset",
        systems=_place("chosen_model", "rejected_model"),
    ),
}
"""The sets by folder name. RewardBench's answers have no order, so a hash decides which answer comes first."""


def read_set(name: str, folder: Path) -> Iterator[Sample]:
    """Read a set's samples; ids and tags are as in FairEval's pairs, and the tag `set` has the set's name.

    Raises:
        DatasetError: the folder lacks the set's files, or an item does not have the published format.
    """
    source = PAIR_SETS[name]
    if not source.find(folder):
        raise DatasetError(folder, "", "no file of the set", f"files as published, such as {source.files[0]}")
    for sample in source.iter_samples(folder):
        case = f"{name}-{sample.id}"
        systems = sample.metadata.get("systems", [])
        cluster = f"{name}-{sample.tags['cluster']}" if "cluster" in sample.tags else case
        category = f"{name}: {sample.tags['category']}"
        # Leave out plain words, because any answer may contain such words.
        about = {"names": [system for system in systems if not system.isalpha()], "human": sample.target}
        tags = {"task": "pairs", "set": name, "category": category, "cluster": cluster}
        yield replace(sample, id=case, tags=tags, metadata={**sample.metadata, **about})
