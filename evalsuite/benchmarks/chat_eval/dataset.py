"""Read published files: comparisons of FairEval and other sets, and ratings of Topical-Chat."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from evalsuite.benchmarks.chat_eval.pair_sets import PAIR_SETS, read_set
from evalsuite.benchmarks.dataset_files import expect, read_json, read_json_lines, read_text, take
from evalsuite.core.errors import DatasetError
from evalsuite.core.protocols import Dataset
from evalsuite.core.types import Sample
from evalsuite.judges import Likert

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from evalsuite.core.protocols import Setup

HUMAN_ASPECTS = (
    Likert("would a person say it like this?", 1, 3, name="naturalness"),
    Likert("does it fit what was said before?", 1, 3, name="coherence"),
    Likert("is it interesting, or is it dull?", 1, 3, name="engagingness"),
    Likert("1 if it makes use of the background, 0 if not", 0, 1, name="groundedness"),
)
"""The four aspects of the ChatEval paper. The files also contain understandability and an overall rating."""

# Source of the scales: Mehri and Eskenazi, "USR" (arXiv 2005.00456, section 3). Source of the names: UniEval (arXiv
# 2210.07197).
# The overall rating, from 1 to 5, in the USR files; the judge does not give this rating.
OVERALL = "overall"
ASPECT_NAMES = tuple(aspect.name for aspect in HUMAN_ASPECTS)


SHIPPED = Path(__file__).parent / "data"
NO_FACT = "_nofact"
GROUND_TRUTH = "Original Ground Truth"
"""The label of the original responses in the conversations, which are the references for all other responses."""
LABELS = {"gpt35": "CHATGPT"}
NAMES = {"gpt35": ("ChatGPT", "GPT-3.5", "GPT3.5"), "vicuna-13b": ("Vicuna",)}
"""Names by which answers may mention the published systems, besides the identifiers."""


def load(setup: Setup) -> Dataset:
    """Load pairs and dialogues, each once per mode."""
    folder = setup.data or SHIPPED
    sets = [name for name in PAIR_SETS if (folder / name).exists()]
    pairs, dialogues = folder / "faireval", folder / "topical_chat.json"
    samples = [
        *(read_pairs(pairs) if pairs.exists() else []),
        *(sample for name in sets for sample in read_set(name, folder / name)),
        *(read_dialogues(dialogues) if dialogues.exists() else []),
    ]
    if not samples:
        raise DatasetError(
            folder, "", "no data", f"a folder ({', '.join(['faireval', *PAIR_SETS])}) or the file topical_chat.json"
        )
    files = ", ".join([*(path.name for path in (pairs, dialogues) if path.exists()), *sets])
    source = files if setup.data else "shipped samples, labelled by their authors"
    return Dataset([_in_mode(sample, mode, setup.modes) for mode in setup.modes for sample in samples], source)


def _in_mode(sample: Sample, mode: str, modes: Sequence[str]) -> Sample:
    name = f"{sample.id}-{mode.replace(':', '-')}" if len(modes) > 1 else sample.id
    return replace(sample, id=name, tags={**sample.tags, "mode": mode})


def read_pairs(folder: Path) -> list[Sample]:
    """Read FairEval's folder: questions, two systems' answers, and people's verdicts, one per question.

    The file of verdicts is `review/review_<one>_<other>_human.txt`, where `<one>` and `<other>` are the systems. The
    files of answers are `answer/answer_<one>.jsonl` and `answer/answer_<other>.jsonl`.
    """
    questions = folder / "question.jsonl"
    asked = list(read_json_lines(questions))
    if not asked:
        raise DatasetError(questions, "", "no questions", "one question per line")
    review, systems = _find_review(folder)
    verdicts = _read_verdicts(review, systems, len(asked))
    answers = [_read_answers(folder / "answer" / f"answer_{system}.jsonl") for system in systems]
    samples: dict[int, Sample] = {}
    for (place, question), verdict in zip(asked, verdicts, strict=True):
        number = take(question, "question_id", int, questions, place)
        if number in samples:
            raise DatasetError(questions, place, f"question {number} again", "each question once")
        both = [_find_answer(texts, number, folder, system) for texts, system in zip(answers, systems, strict=True)]
        samples[number] = _make_pair(question, questions, place, both, systems, verdict)
    return list(samples.values())


def _make_pair(
    question: Mapping[str, Any],
    path: Path,
    place: str,
    answers: Sequence[Mapping[str, str]],
    systems: tuple[str, str],
    verdict: str,
) -> Sample:
    number = take(question, "question_id", int, path, place)
    return Sample(
        id=f"pair-{number}",
        input=take(question, "text", str, path, place),
        target=verdict,
        tags={
            "task": "pairs",
            "category": take(question, "category", str, path, place),
            # The modes of a run judge the same answers, so they share a cluster.
            "cluster": f"pair-{number}",
        },
        metadata={
            "answers": [answer["text"] for answer in answers],
            "systems": list(systems),
            "names": sorted({name for pair in zip(systems, answers, strict=True) for name in _list_names(*pair)}),
            "human": verdict,
        },
    )


def _list_names(system: str, answer: Mapping[str, str]) -> Iterator[str]:
    """List names that would reveal an answer's system, except plain words, which any answer may contain."""
    yield from NAMES.get(system, ())
    yield from (name for name in (system, answer["model_id"].split(":")[0]) if not name.isalpha())


def _find_review(folder: Path) -> tuple[Path, tuple[str, str]]:
    answering = sorted(path.stem.removeprefix("answer_") for path in (folder / "answer").glob("answer_*.jsonl"))
    reviews = sorted((folder / "review").glob("review_*_human.txt"))
    named = {f"review_{one}_{other}_human.txt": (one, other) for one in answering for other in answering}
    fitting = [review for review in reviews if review.name in named]
    if len(fitting) == 1:
        return fitting[0], named[fitting[0].name]
    names = ", ".join(path.name for path in reviews) or "none"
    systems = ", ".join(answering) or "nobody"
    raise DatasetError(
        folder, "review", f"{names}, and answers of {systems}", "one file review_<one>_<other>_human.txt of two of them"
    )


def _read_verdicts(path: Path, systems: tuple[str, str], questions: int) -> list[str]:
    first, second = (_label(system) for system in systems)
    meant = {first: "first", second: "second", "TIE": "tie"}
    lines = read_text(path).split("\n")
    while lines and not lines[-1].strip():
        lines.pop()
    if len(lines) != questions:
        raise DatasetError(path, "", f"{len(lines)} lines", f"one for each of the {questions} questions")
    for number, line in enumerate(lines, 1):
        if line.strip() not in meant:
            raise DatasetError(path, f"line {number}", repr(line.strip()), f"one of {', '.join(meant)}")
    return [meant[line.strip()] for line in lines]


def _label(system: str) -> str:
    return LABELS.get(system, "".join(filter(str.isalnum, system.upper())))


def _read_answers(path: Path) -> dict[int, Mapping[str, str]]:
    answers: dict[int, Mapping[str, str]] = {}
    for place, record in read_json_lines(path):
        number = take(record, "question_id", int, path, place)
        if number in answers:
            raise DatasetError(path, place, f"a second answer to question {number}", "one answer per question")
        answers[number] = {name: take(record, name, str, path, place) for name in ("text", "model_id")}
    return answers


def _find_answer(answers: Mapping[int, Mapping[str, str]], number: int, folder: Path, system: str) -> Mapping[str, str]:
    if number not in answers:
        path = folder / "answer" / f"answer_{system}.jsonl"
        raise DatasetError(path, f"question {number}", "no answer", "one answer per question")
    return answers[number]


def read_dialogues(path: Path) -> list[Sample]:
    """Read Topical-Chat's file: a list of `source`, `context`, `system_id`, `system_output` and `scores`."""
    numbers: dict[str, int] = {}
    responses: Counter[int] = Counter()
    references: dict[int, str] = {}
    samples = []
    for place, record in _read_records(path):
        texts = {name: take(record, name, str, path, place) for name in TEXTS}
        number = numbers.setdefault(texts["source"] + texts["context"], len(numbers) + 1)
        responses[number] += 1
        if texts["system_id"] == GROUND_TRUTH:
            references.setdefault(number, texts["system_output"].strip())
        human = _read_ratings(take(record, "scores", dict, path, place), path, place)
        samples.append(_make_dialogue(texts, number, responses[number], human))
    if not samples:
        raise DatasetError(path, "", "no records", "one record per response")
    return [_add_reference(sample, references) for sample in samples]


def _add_reference(sample: Sample, references: Mapping[int, str]) -> Sample:
    """Add the original response of the conversation as the reference of every other response."""
    reference = references.get(sample.metadata["dialogue"], "")
    if not reference or sample.tags["system"] == GROUND_TRUTH:
        return sample
    return replace(sample, metadata={**sample.metadata, "reference": reference})


TEXTS = ("source", "context", "system_id", "system_output")


def _read_records(path: Path) -> Iterator[tuple[str, dict[str, Any]]]:
    for at, record in enumerate(read_json(path, list), 1):
        yield f"record {at}", expect(record, dict, path, f"record {at}")


def _make_dialogue(texts: Mapping[str, str], number: int, response: int, human: Mapping[str, float]) -> Sample:
    fact = texts["context"].strip()
    return Sample(
        id=f"dialogue-{number}-{response}",
        input=texts["source"].strip(),
        tags={"task": "dialogues", "system": texts["system_id"], "cluster": f"dialogue-{number}"},
        metadata={
            "answers": [texts["system_output"].strip()],
            "background": "" if fact == NO_FACT else fact,
            "names": [],
            "dialogue": number,
            "human": dict(human),
        },
    )


def _read_ratings(scores: Mapping[str, Any], path: Path, place: str) -> dict[str, float]:
    ratings = {}
    rated = [Likert("", 1, 5, name=OVERALL)] if OVERALL in scores else []
    for aspect in (*HUMAN_ASPECTS, *rated):
        value = float(take(scores, aspect.name, float, path, f"{place}, field 'scores'"))
        if not aspect.low <= value <= aspect.high:
            expected = f"a number from {aspect.low} to {aspect.high}"
            raise DatasetError(path, f"{place}, field 'scores', field {aspect.name!r}", f"{value:g}", expected)
        ratings[aspect.name] = value
    return ratings
