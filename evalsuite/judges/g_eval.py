"""G-Eval: average all possible scores, weighted by their probabilities, instead of taking the most probable score.

The expected score is the sum of p(s) s over the possible scores s (Liu et al., "G-Eval: NLG Evaluation using GPT-4 with
Better Human Alignment", arXiv 2303.16634, section 2). The probability p(s) comes from the log-probabilities of the
score's token; if the backend returns none, p(s) is the share of s among n samples.
"""

from __future__ import annotations

import math
import re
from collections.abc import Awaitable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from functools import partial
from typing import TYPE_CHECKING, Any

from evalsuite.core.errors import RequestRefused, SettingsError
from evalsuite.judges import asking
from evalsuite.judges.asking import Judgement, Log
from evalsuite.judges.forms import QUALITY, Likert, parse_aspect_score
from evalsuite.judges.judgements import Assessment, Ballot, find_better_answer
from evalsuite.judges.prompts import SYSTEM_PROMPT, JudgedInput, make_prompt_messages

if TYPE_CHECKING:
    from evalsuite.core.protocols import Model
    from evalsuite.core.types import TokenLogprob

MOST_SAMPLES = 20
FIVE_POINTS = replace(QUALITY, high=5)
ALTERNATIVES = 20  # The number of alternatives to request for each token; OpenAI's API allows no more.
LOW_PROBABILITY = 0.5  # Below this total probability of all scores, an expected score is flagged as unreliable.
REQUEST = "Score the answer on {aspect}.{steps} Reply with the number alone."
STEPS_TOKENS = 400
THOUGHT_ENDS = re.compile(r"</(?:think|thinking|thought)>", re.IGNORECASE)
STEPS = (
    "An answer to a question is going to be scored on {aspect}. Write the evaluation steps for it: a short "
    "numbered list of what to read, to look for and to weigh before the score is given. Write nothing else."
)


@dataclass(frozen=True, slots=True)
class Weighted:
    """Scores each aspect of each answer in a separate call; if there are two answers, the higher score wins."""

    # The aspects to score; a score must be a single digit, so that it is one token.
    aspects: tuple[Likert, ...] = (FIVE_POINTS,)
    samples: int = MOST_SAMPLES  # How many samples to draw if the backend returns no log-probabilities.
    attempts: int = 3  # Maximum requests until an answer can be read.
    params: Mapping[str, Any] = field(default_factory=dict)  # Generation parameters.
    # Whether the judge first writes evaluation steps for each aspect, as in the paper (auto chain of thought). A run
    # requests these evaluation steps once, because they are the same for every case.
    steps: bool = False

    def __post_init__(self) -> None:
        for aspect in self.aspects:
            if not 0 <= aspect.low < aspect.high <= 9:
                raise SettingsError(
                    f"aspect {aspect.name!r} has the scale {aspect.low} to {aspect.high}; a weighted score needs a "
                    "scale within 0 to 9, because longer numbers are more than one token"
                )
        if self.samples < 1:
            raise SettingsError(f"a weighted score needs at least 1 sample; got {self.samples}")

    async def __call__(self, subject: JudgedInput, model: Model) -> Assessment:
        parts = {aspect.name: (subject, aspect) for aspect in self.aspects}
        if len(subject.answers) > 1:
            alone = [(replace(subject, answers=(answer,)), self.aspects[0]) for answer in subject.answers]
            parts = dict(zip(("first", "second"), alone, strict=True))
        calls = (self._compute_expected_score(name, *part, model) for name, part in parts.items())
        judgements, log = await asking.collect_readable_judgements(calls)
        expected = {name: judgement.value for name, judgement in zip(parts, judgements, strict=True)}
        scores = {name: score for name, (score, _) in expected.items()}
        verdict = find_better_answer(scores["first"], scores["second"]) if len(subject.answers) > 1 else None
        ballot = Ballot(scores, verdict, judge="judge", model=model.name)
        weights = {name: facts for name, (_, facts) in expected.items()}
        return Assessment(ballot, (ballot,), log, {"weights": weights})

    def list_prompt_sentences(self) -> Sequence[str]:
        return (SYSTEM_PROMPT, REQUEST, *([STEPS] if self.steps else []))

    async def _compute_expected_score(
        self, speaker: str, subject: JudgedInput, aspect: Likert, model: Model
    ) -> Judgement[tuple[float, dict[str, Any]]]:
        """Compute an expected score, with the facts `method`, `mass`, and `little` if `mass` is low.

        The method `logprobs` is used unless the server refuses log-probabilities or returns none for a score; `mass` is
        the total probability of all scores. With the method `samples`, `mass` is the share of readable samples.
        """
        steps, log = "", Log()
        if self.steps:
            asked_for = STEPS.format(aspect=aspect.describe_scale())
            options = {"attempts": self.attempts, "read_cut_off": True, **self.params, "max_tokens": STEPS_TOKENS}
            written = await asking.ask_until_parsed(model, asked_for, asking.strip_nonempty_text, **options)
            steps, log = f"\nEvaluation steps:\n{written.value}\n", written.log
        request = REQUEST.format(aspect=aspect.describe_scale(), steps=steps)
        prompt = make_prompt_messages(subject.format_parts(), request, subject.media)

        def ask_for_score(**params: Any) -> Awaitable[Judgement[int]]:
            wanted = {"attempts": self.attempts, **self.params, **params}
            return asking.ask_until_parsed(model, prompt, partial(parse_whole_score, aspect=aspect), **wanted)

        found, method = None, "logprobs"
        with suppress(RequestRefused):
            answer = await ask_for_score(logprobs=True, top_logprobs=ALTERNATIVES)
            found = compute_expectation(drop_reasoning_tokens(answer.logprobs or ()), aspect, answer.value)
            messages = answer.log
        if found is None:
            # Replace a temperature of 0 by 1, because at 0 all samples would be equal.
            temperature, seed = self.params.get("temperature") or 1.0, int(self.params.get("seed") or 0)
            asked = [ask_for_score(temperature=temperature, seed=seed + at) for at in range(self.samples)]
            samples, messages = await asking.collect_readable_judgements(asked, self.samples // 2 + 1)
            mean = math.fsum(sample.value for sample in samples) / len(samples)
            found, method = (mean, len(samples) / self.samples), "samples"
        score, mass = found
        facts = {"method": method, "mass": mass} | ({"little": True} if mass < LOW_PROBABILITY else {})
        return Judgement((score, facts), "", asking.label_log(log + messages, speaker, model))


def parse_whole_score(text: str, aspect: Likert) -> int:
    """Read an answer that consists of one whole number on the aspect's scale."""
    with suppress(ValueError):
        score = parse_aspect_score(text, aspect)
        if score.is_integer():
            return int(score)
    raise ValueError(f"it is not a whole number from {aspect.low} to {aspect.high} alone.")


def drop_reasoning_tokens(logprobs: Sequence[TokenLogprob]) -> Sequence[TokenLogprob]:
    """Remove the tokens of the model's reasoning, because a number in the reasoning is not a score."""
    ends = [match.end() for match in THOUGHT_ENDS.finditer("".join(token.token for token in logprobs))]
    begun = 0
    for at, token in enumerate(logprobs):
        if not ends or begun >= ends[-1]:
            return logprobs[at:]
        begun += len(token.token)
    return ()


def compute_expectation(logprobs: Sequence[TokenLogprob], aspect: Likert, parsed: int) -> tuple[float, float] | None:
    """Compute the expected score and the total probability of the scores, from the log-probabilities of the tokens.

    The result is None if no token is a score, or if the probability of every score is zero.
    """
    scores = [token for token in logprobs if _read_token_score(token.token, aspect) is not None]
    # Prefer a token that equals the parsed score, because an answer may also contain other numbers, as in a numbered
    # list.
    matching = [token for token in scores if _read_token_score(token.token, aspect) == parsed] or scores
    if not matching:
        return None
    logprobs_by_token = {**dict(matching[0].top), matching[0].token: matching[0].logprob}
    chances = [
        (possible, math.exp(logprob))
        for token, logprob in logprobs_by_token.items()
        if (possible := _read_token_score(token, aspect)) is not None
    ]
    mass = math.fsum(chance for _, chance in chances)
    return (math.fsum(possible * chance for possible, chance in chances) / mass, mass) if mass else None


def _read_token_score(token: str, aspect: Likert) -> int | None:
    text = token.strip()
    is_digit = len(text) == 1 and text in "0123456789"
    return int(text) if is_digit and aspect.low <= int(text) <= aspect.high else None
