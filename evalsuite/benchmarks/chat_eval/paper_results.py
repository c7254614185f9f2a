"""Figures that others published on the same files, shown beside ours and marked as theirs.

Sources: [1] Chan et al., "ChatEval" (arXiv 2308.07201), tables 1 to 4 and section 3. [2] Wang et al.,
"Large Language Models are not Fair Evaluators" (arXiv 2305.17926), the main table. A cell is None where the
figure could not be checked.
"""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class OnPairs:
    """A published row on FairEval: accuracy as a share, Cohen's kappa."""

    name: str
    accuracy: float
    kappa: float | None = None


PEOPLE = (
    OnPairs("a human annotator, the mean of three [2]", 0.717, 0.54),
    OnPairs("human annotator 1 [1]", 0.688),
    OnPairs("human annotator 2 [1]", 0.763),
    OnPairs("human annotator 3 [1]", 0.70),
)
JUDGES = (
    OnPairs("ChatGPT, multiple evidence, both orders [2]", 0.587, 0.31),
    OnPairs("GPT-4, multiple evidence, both orders [2]", 0.625, 0.37),
    OnPairs("ChatGPT, single agent [1]", 0.538, 0.27),
    OnPairs("ChatGPT, panel of 2 roles, 2 turns [1]", 0.60, 0.33),
    OnPairs("GPT-4, single agent [1]", 0.613),
    OnPairs("GPT-4, panel of 2 roles, 2 turns [1]", 0.638, 0.40),
)
STRATEGIES = {
    "one_by_one": OnPairs("ChatGPT, one by one, 3 roles, 2 turns [1]", 0.60, 0.33),
    "simultaneous": OnPairs("ChatGPT, simultaneous, 3 roles, 2 turns [1]", 0.55, 0.28),
    "simultaneous_summarizer": OnPairs(
        "ChatGPT, simultaneous with summarizer, 3 roles, 2 turns [1]", 0.55, 0.27
    ),
}
SAME_ROLE = OnPairs("ChatGPT, panel of the same role, 2 roles, 2 turns [1]", 0.538, 0.25)
DIALOGUES = {"GPT-4, panel of 2 roles, 2 turns [1]": {"spearman": 0.684, "kendall": 0.632}}
"""Mean correlations over the four aspects."""

BY_ROLES = {2: JUDGES[3], 3: STRATEGIES["one_by_one"]}
"""One by one in 2 turns, by the number of roles, from tables 1 and 4: figure 3 itself has no numbers to check."""

FIGURE_3 = (
    "The paper's own points are those of its tables: one by one in 2 turns, with 2 roles (table 1) and with 3 "
    "(table 4). Its figure 3 has further ones that could not be checked; in words it says that accuracy grows up to 4 "
    "roles and falls with 5, and that further turns do not help."
)
