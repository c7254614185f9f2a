"""Struc-Bench made from other sources: `evalsuite build struc-bench rotowire | files | format-cot | statistics`.

`rotowire` reads games (`box_scores`, `text_tables`), keeps what their texts mention (`mentions`) and writes
raw text (`raw_text`); `files` cuts tables out of pages (`html_fragments`, `latex_fragments`) and words their
content (`wording`); `format_cot` has a model describe tables (`describing`) through a gateway (`session`);
`table_sizes` counts.
"""

from __future__ import annotations

from evalsuite.builders.struc_bench.command import add_arguments, run

__all__ = ["add_arguments", "run"]
