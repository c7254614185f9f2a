"""ToolEyes' scorers: each sample is scored by the formulas of its mode's variant."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from evalsuite.benchmarks.tool_eyes import paper_scoring, released_scoring
from evalsuite.benchmarks.tool_eyes.capabilities import is_released
from evalsuite.benchmarks.tool_eyes.prompts import judge_templates
from evalsuite.judges.signature import signature, signed

if TYPE_CHECKING:
    from evalsuite.benchmarks.tool_eyes.released_files import ReleasedPrompts
    from evalsuite.core.protocols import Model
    from evalsuite.core.types import Sample, Score, Transcript


@dataclass(frozen=True, slots=True)
class RuleScores:
    """The scores that need no judge."""

    def __call__(self, sample: Sample, transcript: Transcript) -> dict[str, float]:
        """`format_alignment`, `reality` and `finished`, each in [0, 1]."""
        if is_released(sample):
            return released_scoring.rule_scores(sample, transcript)
        return paper_scoring.rule_scores(sample, transcript)


@dataclass(frozen=True, slots=True)
class JudgedCapabilities:
    """The judged capabilities, what they are products of, and the overall score.

    Attributes:
        released: the authors' own questions; None where no mode of the run needs them.
    """

    released: ReleasedPrompts | None = None

    async def judged(self, sample: Sample, transcript: Transcript, judge: Model) -> dict[str, float | Score]:
        """Scores in [0, 1], by name; see `paper_scoring.judged` and `released_scoring.judged`.

        Raises:
            JudgeError: an answer of the judge could not be parsed; the released variant counts it as 0.
            ModelError: a call failed for good.
        """
        if is_released(sample) and self.released:
            scores = await released_scoring.judged(sample, transcript, judge, self.released)
            asked, params = repr(self.released.questions), released_scoring.JUDGE_PARAMETERS
            return signed(scores, signature("tool_eyes:released", [judge], asked, params))
        scores = await paper_scoring.judged(sample, transcript, judge)
        params = paper_scoring.JUDGE_PARAMETERS
        return signed(scores, signature("tool_eyes", [judge], judge_templates(), params))
