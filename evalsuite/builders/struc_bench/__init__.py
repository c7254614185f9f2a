"""Struc-Bench made from other sources: the steps of `evalsuite build struc-bench`.

`rotowire` reads games (`box_scores`, `text_tables`), keeps what their texts mention (`mentions`) and writes
raw text (`raw_text`); `files` cuts tables out of pages (`html_fragments`, `latex_fragments`) and words their
content (`wording`); `texts` has a model word it, and `format_cot` has one describe the format (`describing`), both
through a gateway (`model_texts`, `session`); `table_sizes` counts. `rating_sheet` writes outputs for people to rate,
and `ratings` reads what they filled in.
"""

from __future__ import annotations

from evalsuite.builders.struc_bench.command import add_arguments, run

__all__ = ["add_arguments", "run"]
