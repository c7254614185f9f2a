"""Published results on ChatEval's files; reports show these results beside the run's results and cite the source.

Sources: [1] Chan et al., "ChatEval" (arXiv 2308.07201), tables 1 to 4 and section 3, and the authors' repository
thunlp/ChatEval: the script that draws figure 3, and GPT-4's judgements of Topical-Chat, from which correlations are
computed. [2] Wang et al., "Large Language Models are not Fair Evaluators" (arXiv 2305.17926), the main table. A
published result is None if it could not be checked.
"""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class PairsResult:
    """A published result on FairEval: accuracy in [0, 1] and Cohen's kappa."""

    name: str
    accuracy: float
    kappa: float | None = None


PEOPLE = (
    PairsResult("a human annotator, the mean of three [2]", 0.717, 0.54),
    PairsResult("human annotator 1 [1]", 0.688),
    PairsResult("human annotator 2 [1]", 0.763),
    PairsResult("human annotator 3 [1]", 0.70),
)
SINGLE_AGENT = PairsResult("ChatGPT, single agent [1]", 0.538, 0.27)
JUDGES = (
    PairsResult("ChatGPT, multiple evidence, both orders [2]", 0.587, 0.31),
    PairsResult("GPT-4, multiple evidence, both orders [2]", 0.625, 0.37),
    SINGLE_AGENT,
    PairsResult("ChatGPT, panel of 2 roles, 2 turns [1]", 0.60, 0.33),
    PairsResult("GPT-4, single agent [1]", 0.613),
    PairsResult("GPT-4, panel of 2 roles, 2 turns [1]", 0.638, 0.40),
)
STRATEGIES = {
    "one_by_one": PairsResult("ChatGPT, one by one, 3 roles, 2 turns [1]", 0.60, 0.33),
    "simultaneous": PairsResult("ChatGPT, simultaneous, 3 roles, 2 turns [1]", 0.55, 0.28),
    "simultaneous_summarizer": PairsResult("ChatGPT, simultaneous with summarizer, 3 roles, 2 turns [1]", 0.55, 0.27),
}
SAME_ROLE = PairsResult("ChatGPT, panel of the same role, 2 roles, 2 turns [1]", 0.538, 0.25)
# Correlations with people in naturalness, coherence, engagingness and groundedness, computed from the released outputs.
# The means of the panel's correlations (0.684 and 0.632) agree with table 2.
DIALOGUES = {
    "GPT-4, single agent [1]": {
        "spearman": (0.5318, 0.5908, 0.7342, 0.7736),
        "kendall": (0.4826, 0.5353, 0.6759, 0.7497),
    },
    "GPT-4, panel of 3 annotators, as released [1]": {
        "spearman": (0.6299, 0.6190, 0.7654, 0.7216),
        "kendall": (0.5707, 0.5611, 0.6950, 0.6995),
    },
}

BY_ROLES = {
    1: SINGLE_AGENT,
    2: PairsResult("2 roles", 0.60, 0.33),
    3: PairsResult("3 roles", 0.625, 0.37),
    4: PairsResult("4 roles", 0.625, 0.38),
    5: PairsResult("5 roles", 0.588, 0.32),
}
"""Results of figure 3 by number of roles, with strategy one by one in 2 turns; 1 means the single agent."""
BY_TURNS = {
    1: SINGLE_AGENT,
    2: PairsResult("2 turns", 0.60, 0.33),
    3: PairsResult("3 turns", 0.55, 0.28),
    4: PairsResult("4 turns", 0.563, 0.28),
    5: PairsResult("5 turns", 0.538, 0.23),
}
"""Results of figure 3 by number of turns, with strategy one by one and 2 roles; 1 means the single agent."""

FIGURE_3 = (
    "The paper's points come from the script that its authors released: one by one, with 2 turns for the number of "
    "roles and with 2 roles for the number of turns; 1 is the single agent. For 3 roles, the figure has 62.5% and "
    "0.37, but table 4 has 60.0% and 0.33."
)
