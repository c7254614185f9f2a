"""Read published files with comparisons (FairEval and other data sets) or ratings (Topical-Chat).

The other data sets are MT-Bench's human judgements (Zheng et al., arXiv 2306.05685), LLMBar (Zeng et al., arXiv
2310.07641), JudgeBench (Tan et al., arXiv 2410.12784) and RewardBench (Lambert et al., arXiv 2403.13787).
"""

from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from hashlib import sha256
from pathlib import Path
from typing import Any

from evalsuite.core.errors import DatasetError
from evalsuite.core.protocols import Dataset, Setup
from evalsuite.core.types import Sample
from evalsuite.judges import Likert
from evalsuite.samples.files import FILE, Field, PublishedDataset, SampleFields, make_label_reader, read_text_field
from evalsuite.samples.items import SourceItem, read_json_lines, read_json_records, read_text

# The four aspects of the ChatEval paper; the files also contain understandability and an overall rating. The aspects'
# scales are from Mehri and Eskenazi, "USR" (arXiv 2005.00456, section 3); their names are from UniEval (arXiv
# 2210.07197).
HUMAN_ASPECTS = (
    Likert("would a person say it like this?", 1, 3, name="naturalness"),
    Likert("does it fit what was said before?", 1, 3, name="coherence"),
    Likert("is it interesting, or is it dull?", 1, 3, name="engagingness"),
    Likert("1 if it makes use of the background, 0 if not", 0, 1, name="groundedness"),
)
OVERALL = "overall"  # People's overall rating in the USR files, from 1 to 5; the judge is not asked for it.
ASPECT_NAMES = tuple(aspect.name for aspect in HUMAN_ASPECTS)
OVERLAP = "overlap"  # Key in `facts`: the values of metrics that compare a response with its reference.


SHIPPED = Path(__file__).parent / "data"
NO_FACT = "_nofact"
GROUND_TRUTH = "Original Ground Truth"  # The `system_id` of the original response, the reference for all others.
TEXTS = ("source", "context", "system_id", "system_output")
LABELS = {"gpt35": "CHATGPT"}
NAMES = {"gpt35": ("ChatGPT", "GPT-3.5", "GPT3.5"), "vicuna-13b": ("Vicuna",)}
"""Names by which answers may mention the published systems, besides the identifiers."""


def load_dataset(setup: Setup) -> Dataset:
    """Load one sample per mode for each pair of answers and each dialogue response."""
    folder = setup.data or SHIPPED
    sets = [name for name in PAIR_SETS if (folder / name).exists()]
    pairs, dialogues = folder / "faireval", folder / "topical_chat.json"
    samples = [
        *(read_pairs(pairs) if pairs.exists() else []),
        *(sample for name in sets for sample in read_published_set(name, folder / name)),
        *(read_dialogues(dialogues) if dialogues.exists() else []),
    ]
    if not samples:
        raise DatasetError(
            folder, "", "no data", f"a folder ({', '.join(['faireval', *PAIR_SETS])}) or the file topical_chat.json"
        )
    files = ", ".join([*(path.name for path in (pairs, dialogues) if path.exists()), *sets])
    source = files if setup.data else "shipped samples, labelled by their authors"
    return Dataset([_copy_for_mode(sample, mode, setup.modes) for mode in setup.modes for sample in samples], source)


def _copy_for_mode(sample: Sample, mode: str, modes: Sequence[str]) -> Sample:
    name = f"{sample.id}-{mode.replace(':', '-')}" if len(modes) > 1 else sample.id
    return replace(sample, id=name, tags={**sample.tags, "mode": mode})


def read_pairs(folder: Path) -> list[Sample]:
    """Read FairEval's folder; each question has the answers of two systems and one verdict of people.

    The file of verdicts is `review/review_<one>_<other>_human.txt`, where `<one>` and `<other>` are the systems. The
    files of answers are `answer/answer_<one>.jsonl` and `answer/answer_<other>.jsonl`.
    """
    questions = folder / "question.jsonl"
    asked = list(read_json_lines(questions))
    if not asked:
        raise DatasetError(questions, "", "no questions", "one question per line")
    review, systems = _find_review_and_systems(folder)
    verdicts = _read_verdicts(review, systems, len(asked))
    files = {system: folder / "answer" / f"answer_{system}.jsonl" for system in systems}
    answers = {system: _read_answers_by_question(file) for system, file in files.items()}
    samples: dict[int, Sample] = {}
    for question, verdict in zip(asked, verdicts, strict=True):
        number = question.read("question_id", int)
        if number in samples:
            raise question.make_error(f"question {number} again", "each question once")
        if without := [system for system in systems if number not in answers[system]]:
            raise DatasetError(files[without[0]], f"question {number}", "no answer", "one answer per question")
        both = [answers[system][number] for system in systems]
        category = question.read("category", str)
        samples[number] = Sample(
            id=f"pair-{number}",
            input=question.read("text", str),
            target=verdict,
            # All modes of a run judge the same answers, so their cases on one question share a cluster.
            tags={"task": "pairs", "category": category, "cluster": f"pair-{number}"},
            metadata={
                "answers": [answer["text"] for answer in both],
                "systems": list(systems),
                "names": sorted({name for pair in zip(systems, both, strict=True) for name in _list_aliases(*pair)}),
                "human": verdict,
            },
        )
    return list(samples.values())


def _list_aliases(system: str, answer: Mapping[str, str]) -> Iterator[str]:
    """List names that would reveal an answer's system; leave out plain words, which any answer may contain."""
    yield from NAMES.get(system, ())
    yield from (name for name in (system, answer["model_id"].split(":")[0]) if not name.isalpha())


def _find_review_and_systems(folder: Path) -> tuple[Path, tuple[str, str]]:
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


def _read_verdicts(path: Path, systems: tuple[str, str], question_count: int) -> list[str]:
    first, second = (LABELS.get(name, "".join(filter(str.isalnum, name.upper()))) for name in systems)
    meant = {first: "first", second: "second", "TIE": "tie"}
    text = read_text(path).rstrip()
    lines = text.split("\n") if text else []
    if len(lines) != question_count:
        raise DatasetError(path, "", f"{len(lines)} lines", f"one for each of the {question_count} questions")
    for number, line in enumerate(lines, 1):
        if line.strip() not in meant:
            raise DatasetError(path, f"line {number}", repr(line.strip()), f"one of {', '.join(meant)}")
    return [meant[line.strip()] for line in lines]


def _read_answers_by_question(path: Path) -> dict[int, Mapping[str, str]]:
    answers: dict[int, Mapping[str, str]] = {}
    for item in read_json_lines(path):
        number = item.read("question_id", int)
        if number in answers:
            raise item.make_error(f"a second answer to question {number}", "one answer per question")
        answers[number] = {name: item.read(name, str) for name in ("text", "model_id")}
    return answers


def read_dialogues(path: Path) -> list[Sample]:
    """Read Topical-Chat's file: a list of `source`, `context`, `system_id`, `system_output` and `scores`."""
    numbers: dict[str, int] = {}
    responses: Counter[int] = Counter()
    references: dict[int, str] = {}
    samples: list[Sample] = []
    for item in read_json_records(path):
        texts = {name: item.read(name, str) for name in TEXTS}
        number = numbers.setdefault(texts["source"] + texts["context"], len(numbers) + 1)
        responses[number] += 1
        fact, response = texts["context"].strip(), texts["system_output"].strip()
        if texts["system_id"] == GROUND_TRUTH:
            references.setdefault(number, response)
        metadata = {
            "answers": [response],
            "background": "" if fact == NO_FACT else fact,
            "names": [],
            "dialogue": number,
            "human": _read_ratings_by_aspect(item.read_item("scores")),
        }
        tags = {"task": "dialogues", "system": texts["system_id"], "cluster": f"dialogue-{number}"}
        name = f"dialogue-{number}-{responses[number]}"
        samples.append(Sample(id=name, input=texts["source"].strip(), tags=tags, metadata=metadata))
    if not samples:
        raise DatasetError(path, "", "no records", "one record per response")
    for index, sample in enumerate(samples):
        # The conversation's original response is the reference for all other responses.
        reference = references.get(sample.metadata["dialogue"])
        if reference and sample.tags["system"] != GROUND_TRUTH:
            samples[index] = replace(sample, metadata={**sample.metadata, "reference": reference})
    return samples


def _read_ratings_by_aspect(scores: SourceItem) -> dict[str, float]:
    ratings = {}
    rated = [Likert("", 1, 5, name=OVERALL)] if OVERALL in scores.fields else []
    for aspect in (*HUMAN_ASPECTS, *rated):
        value = float(scores.read(aspect.name, float))
        if not aspect.low <= value <= aspect.high:
            raise scores.make_error(f"{value:g}", f"a number from {aspect.low} to {aspect.high}", aspect.name)
        ratings[aspect.name] = value
    return ratings


def _make_text_fields_reader(*names: str) -> Callable[[Mapping[str, Any]], list[str]]:
    return lambda item: [read_text_field(item, name) for name in names]


def _make_pair_set(
    files: tuple[str, ...], question: Field, answers: Field, verdict: Field, **optional: Field
) -> PublishedDataset:
    """Make a published data set of answer pairs; optional fields are `category`, `cluster` and `systems`."""
    systems = {"systems": optional.pop("systems")} if "systems" in optional else {}
    return PublishedDataset(files, SampleFields(question, verdict, None, optional, {"answers": answers, **systems}))


# The titles of an MT-Bench conversation's two messages, by the role that wrote them.
_TITLES = {
    "user": ("The first question:", "The second question, asked after the first was answered:"),
    "assistant": ("The answer to the first question:", "The answer to the second question:"),
}


def _join_messages(item: Mapping[str, Any], conversation: str, role: str) -> str:
    """Join a role's messages up to the judged turn of an MT-Bench conversation; two messages get titles."""
    turns = [read_text_field(said, "content") for said in item[conversation] if said["role"] == role]
    if item["turn"] not in (1, 2) or len(turns) < item["turn"]:
        raise ValueError(f"turn {item['turn']!r:.20} of {len(turns)}")
    if item["turn"] == 1:
        return turns[0]
    return "\n\n".join(f"{title}\n{turn}" for title, turn in zip(_TITLES[role], turns[:2], strict=True))


def _make_swapping_reader(chosen: str, rejected: str) -> Callable[[Mapping[str, Any]], list[str]]:
    """Make a function that reads two fields of an item, and swaps them if the chosen answer must be shown second."""
    in_order, swapped = _make_text_fields_reader(chosen, rejected), _make_text_fields_reader(rejected, chosen)
    return lambda item: in_order(item) if _choose_better_answer_place(item) == "first" else swapped(item)


def _choose_better_answer_place(item: Mapping[str, Any]) -> str:
    """Choose by a hash whether RewardBench's better answer is shown `first` or `second`."""
    text = f"{read_text_field(item, 'prompt')}\n{read_text_field(item, 'chosen')}"
    return ("first", "second")[sha256(text.encode("utf-8", "surrogatepass")).digest()[0] % 2]


PAIR_SETS = {
    "mt_bench": _make_pair_set(
        ("**/human*",),
        lambda item: _join_messages(item, "conversation_a", "user"),
        lambda item: [_join_messages(item, name, "assistant") for name in ("conversation_a", "conversation_b")],
        make_label_reader("winner", {"model_a": "first", "model_b": "second", "tie": "tie", "tie (bothbad)": "tie"}),
        category=make_label_reader("turn", {1: "first turn", 2: "second turn"}),
        cluster="question_id",
        systems=_make_text_fields_reader("model_a", "model_b"),
    ),
    "llmbar": _make_pair_set(
        ("LLMBar/**/dataset.json", "**/dataset.json"),
        "input",
        _make_text_fields_reader("output_1", "output_2"),
        make_label_reader("label", {1: "first", 2: "second"}),
        category=lambda item: str(item[FILE]).rpartition("/")[0] or "all",
    ),
    "judgebench": _make_pair_set(
        ("**/*.jsonl", "**/*.parquet"),
        "question",
        _make_text_fields_reader("response_A", "response_B"),
        make_label_reader("label", {"A>B": "first", "B>A": "second"}),
        category="source",
    ),
    "rewardbench": _make_pair_set(
        ("**/filtered*", "*.jsonl"),
        "prompt",
        _make_swapping_reader("chosen", "rejected"),
        _choose_better_answer_place,
        category="subset",
        systems=_make_swapping_reader("chosen_model", "rejected_model"),
    ),
}
"""The sets by folder name. RewardBench's answers have no order, so a hash decides which answer comes first."""


def read_published_set(name: str, folder: Path) -> Iterator[Sample]:
    """Read a set of answer pairs; ids and tags are like those of FairEval's pairs, and the tag `set` names the set.

    Raises:
        DatasetError: the folder lacks the data set's files, or an item does not have the published format.
    """
    for sample in PAIR_SETS[name].iter_samples(folder):
        case = f"{name}-{sample.id}"
        systems = sample.metadata.get("systems", [])
        cluster = f"{name}-{sample.tags['cluster']}" if "cluster" in sample.tags else case
        category = f"{name}: {sample.tags['category']}"
        # These names are removed from the answers, so leave out plain words, which any answer may contain.
        about = {"names": [system for system in systems if not system.isalpha()], "human": sample.target}
        tags = {"task": "pairs", "set": name, "category": category, "cluster": cluster}
        yield replace(sample, id=case, tags=tags, metadata={**sample.metadata, **about})
