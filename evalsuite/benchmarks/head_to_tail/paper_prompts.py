"""The paper's own prompts, read from the user's text files.

Prompts 2 to 7 of the paper's appendix A.1 are not shipped for lack of a licence. If they are copied from there into
`prompt_2.txt` to `prompt_7.txt` beside the questions, including the slots in braces (`{QUESTION}`), they are used
word for word.
"""

from __future__ import annotations

import json
import re
from dataclasses import dataclass
from typing import TYPE_CHECKING

from evalsuite.benchmarks.dataset_files import read_text
from evalsuite.core.errors import DatasetError, SettingsError

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence
    from pathlib import Path

    from evalsuite.benchmarks.head_to_tail.prompts import Example

# The paper's numbers of its prompts, by mode.
PAPER_MODES = {
    "paper": 3,
    "paper:zero_shot": 4,
    "paper:in_domain": 5,
    "paper:brief": 6,
    "paper:best_guess": 7,
}
JUDGE_PROMPT = 2
_SLOTS = {
    2: ("{QUESTION}", "{GROUND_TRUTH}", "{PREDICTION}"),
    5: ("{QUESTION}", "{QUESTION#}", "{ANSWER#}"),
}
_QUESTION_ONLY = ("{QUESTION}",)
_SLOT = re.compile(r"\{[A-Z_]+#?\}")


@dataclass(frozen=True, slots=True)
class PaperPrompts:
    """The prompts that the chosen modes need, by their numbers in the paper."""

    texts: Mapping[int, str]

    def question(self, mode: str, question: str, example: Example | None) -> str:
        """The prompt for one question.

        Args:
            mode: one of `PAPER_MODES`.
            question: the question.
            example: for `paper:in_domain`, another question of the same template with its answer.
        """
        words = {"{QUESTION}": question}
        if example:
            words |= {"{QUESTION#}": example.question, "{ANSWER#}": example.answer}
        return _filled(self.texts[PAPER_MODES[mode]], words)

    def verdict(self, question: str, answers: Sequence[str], answer: str) -> str:
        """The prompt for the judge; acceptable answers are a JSON list, as in the paper."""
        truth = json.dumps(list(answers), ensure_ascii=False)
        words = {"{QUESTION}": question, "{GROUND_TRUTH}": truth, "{PREDICTION}": answer}
        return _filled(self.texts[JUDGE_PROMPT], words)


def paper_prompts(folder: Path | None, modes: Iterable[str], *, judged: bool) -> PaperPrompts | None:
    """Reads the files that these modes need; None if no mode is the paper's.

    Args:
        folder: the benchmark's folder below `--data`.
        modes: the modes of the run.
        judged: whether the run has a judge, which needs Prompt 2.

    Raises:
        SettingsError: there is no folder.
        DatasetError: a file is missing, or lacks a slot.
    """
    numbers = {PAPER_MODES[mode] for mode in modes if mode in PAPER_MODES}
    if not numbers:
        return None
    if folder is None:
        raise SettingsError(
            "head_to_tail's modes called paper ask in the paper's own words, which are read from "
            "prompt_2.txt to prompt_7.txt in DIR/head_to_tail: name the folder with --data DIR"
        )
    wanted = sorted(numbers | ({JUDGE_PROMPT} if judged else set()))
    return PaperPrompts({number: _read(folder / f"prompt_{number}.txt", number) for number in wanted})


def _read(path: Path, number: int) -> str:
    if not path.is_file():
        expected = f"Prompt {number} of appendix A.1 of arXiv 2308.10168, as it is printed there"
        raise DatasetError(path, "", "no such file", expected)
    text = read_text(path).strip()
    for slot in _SLOTS.get(number, _QUESTION_ONLY):
        if slot not in text:
            raise DatasetError(path, "", f"no {slot}", f"Prompt {number} with its slots in braces")
    return text


def _filled(text: str, words: Mapping[str, str]) -> str:
    """Fills the slots in a single pass, so that braces in a question stay as they are."""
    return _SLOT.sub(lambda slot: words.get(slot[0], slot[0]), text)
