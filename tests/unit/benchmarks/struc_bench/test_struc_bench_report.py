"""The section's tables and pictures, from scores worked by hand."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest
from sacrebleu.metrics.bleu import BLEU

from evalsuite.benchmarks.struc_bench import STRUC_BENCH
from evalsuite.benchmarks.struc_bench.report import make_report
from evalsuite.benchmarks.struc_bench.scoring import FACT, count_bleu_matches
from evalsuite.core.types import Record, Transcript
from evalsuite.output.reports.markdown import render_sections, render_table
from evalsuite.output.reports.section import Block, Chart, Passage, Section, Table
from evalsuite.results.tally import Estimate, Row, RunView, Tally

if TYPE_CHECKING:
    from evalsuite.core.types import Outcome

SCORES = {
    "table_score": 1.0,
    "table_content": 1.0,
    "table_form": 1.0,
    "bleu": 1.0,
    "rouge_l": 1.0,
    "error_free": 1.0,
    "coverage": 1.0,
}

OTHERS = ("GPT-NeoX-20B", "GPT-3.5", "Vicuna-13B", "fine-tuned LLaMA-7B", "LLaMA-7B")  # Beside GPT-4.


def row(sample: str, outcome: Outcome = "passed", mode: str = "direct", **more: Any) -> Row:
    tags = {"format": sample.split("-", maxsplit=1)[0], "mode": mode, "cluster": sample}
    facts = {"sizes": [[3, 4]], "names": [""], "words": 9, **more.pop("facts", {})}
    scores = {**SCORES, **more} if outcome != "error" else {}
    return Row(f"case[{sample}-{mode}]", sample, 1, outcome, tags, scores, facts)


def read(case: str) -> Record:
    transcript = Transcript("said of " + case)
    return Record(case, "struc_bench", "x", 1, "m", "passed", target="wanted", transcript=transcript)


def view(rows: list[Row], label: str = "model") -> RunView:
    return RunView(label, Tally.of(rows), read=read)


def table(section: Section, title: str) -> Table:
    return next(block for block in section.blocks if isinstance(block, Table) and block.title == title)


def chart(section: Section, name: str) -> Chart:
    return next(block for block in section.blocks if isinstance(block, Chart) and block.name == name)


def cells(found: Table, place: int = 0) -> dict[str, Any]:
    values = (cell.value if isinstance(cell, Estimate) else cell for cell in found.rows[place])
    return dict(zip((column.title for column in found.columns), values, strict=True))


def titles(blocks: tuple[Block, ...]) -> list[str]:
    return [block.title for block in blocks if isinstance(block, Table)]


def test_each_format_that_was_asked_has_a_block_with_a_row_a_run() -> None:
    one = view([row("html-000", rouge_l=0.5), row("html-001", rouge_l=0.0), row("latex-000")], "one")
    two = view([row("html-000", rouge_l=0.75)], "two")
    section = make_report([one, two])
    assert titles(tuple(section.blocks))[:3] == ["Table score", "LaTeX", "HTML"]
    block = table(section, "HTML")
    assert [cells(block, place)["ROUGE-L, stemmed"] for place in (0, 1)] == [0.25, 0.75]
    assert [cells(block, place)["Run"] for place in (0, 1)] == ["one", "two"]
    assert [line[0] for line in table(section, "LaTeX").rows if "published" not in str(line[0])] == ["one"]


def test_the_paper_s_table_2_follows_the_runs_of_each_format_in_the_same_units() -> None:
    section = make_report([view([row("html-000"), row("latex-000", h_content_released=1.0, h_format_released=2.0)])])
    found = {line[0]: cells(table(section, "HTML"), place) for place, line in enumerate(table(section, "HTML").rows)}
    # Tang et al., NAACL 2024, Table 2, HTML: GPT-4 | 79.25 | 85.95 | 97.22 | -1.31 | 41.59 | 9.17 | 9.62 | 1.15 | 2.29
    assert list(found.pop("GPT-4 (published)").values())[1:] == [
        None, pytest.approx(0.7925), None, pytest.approx(0.8595), pytest.approx(0.9722), -1.31, pytest.approx(0.4159),
        9.17, 9.62,
    ]  # fmt: skip
    assert list(found) == ["model", *(f"{name} (published)" for name in OTHERS)]
    assert "do not compare" in table(section, "LaTeX").note
    released = table(section, "H-Score as released").rows
    assert [line[:2] for line in released][6:9] == [
        ["LaTeX", "LLaMA-7B (published)"],
        ["HTML", "model"],
        ["HTML", "GPT-NeoX-20B (published)"],
    ]
    assert ["HTML", "GPT-4 (published)", 1.15, 2.29, None] in released


def test_an_error_is_no_output_and_no_score() -> None:
    section = make_report([view([row("html-000"), row("html-001", "error")])])
    found = cells(table(section, "HTML"))
    assert found["Outputs"] == 1
    assert found["ROUGE-L, stemmed"] == 1.0


def test_the_corpus_bleu_of_a_block_is_sacrebleu_s_own_and_a_gate_can_name_it() -> None:
    pairs = [("| a | b c d e | f |", "| a | b c d x | f |"), ("q r s t u", "q r s t u v w x y")]
    rows = [
        row(f"html-{place:03}", facts={FACT: count_bleu_matches(said, wanted)})
        for place, (said, wanted) in enumerate(pairs)
    ]
    expected = BLEU().corpus_score([said for said, _ in pairs], [[wanted for _, wanted in pairs]]).score / 100
    assert cells(table(make_report([view(rows)]), "HTML"))["SacreBLEU"] == pytest.approx(expected)
    derived = STRUC_BENCH.derived["sacrebleu"](Tally.of(rows))
    assert derived
    assert derived.value == pytest.approx(expected)


def test_types_of_errors_are_shares_of_outputs_over_all_formats_and_in_each() -> None:
    rows = [
        row("html-000", element_error=1.0, error_free=0.0),
        row("html-001", element_error=0.0),
        row("latex-000", element_error=0.0),
        row("latex-001", element_error=0.0),
    ]
    errors = table(make_report([view(rows)]), "Types of errors")
    assert [(cells(errors, place)["Format"], cells(errors, place)["Element error"]) for place in range(3)] == [
        ("all", 0.25),
        ("LaTeX", 0.0),
        ("HTML", 0.5),
    ]
    assert cells(errors)["No error"] == 0.75


def test_one_run_s_ability_map_has_a_polygon_a_format_and_several_runs_one_each() -> None:
    rows = [row("html-000", coverage=0.5), row("latex-000", coverage=0.25)]
    alone = chart(make_report([view(rows)]), "struc_bench_abilities")
    assert [(series.name, series.values[0]) for series in alone.series] == [("LaTeX", 0.25), ("HTML", 0.5)]
    both = chart(make_report([view(rows, "one"), view(rows, "two")]), "struc_bench_abilities")
    assert [(series.name, series.values[0]) for series in both.series] == [("one", 0.375), ("two", 0.375)]
    assert both.kind == "radar"


def test_an_ability_that_no_output_gave_occasion_for_is_not_measured() -> None:
    section = make_report([view([row("html-000")])])
    assert cells(table(section, "Abilities"))["Reasoning"] is None
    unmeasured = "Formatting, Reasoning, Comprehension, Pragmatics, Hallucination control"
    assert f"Not measured: {unmeasured}." in render_table(table(section, "Abilities"))


def test_the_wanted_tables_are_counted_once_whatever_the_modes_and_runs() -> None:
    both = {"sizes": [[3, 4], [5, 2]], "names": ["Team", "Player"], "words": 301}
    one = {"sizes": [[8, 9]], "names": ["Player"], "words": 501}
    items = {"markdown-000": both, "markdown-001": one}
    rows = [row(name, mode=mode, facts=facts) for mode in ("direct", "format_cot") for name, facts in items.items()]
    wanted = table(make_report([view(rows, "one"), view(rows, "two")]), "The wanted tables")
    assert [list(one) for one in wanted.rows] == [
        ["Raw text", 2, 2, 1, 3, 16 / 3, 5.0],
        ["Raw text, Player", 2, 2, 1, 2, 6.5, 5.5],
    ]


def test_the_heat_map_shows_the_share_of_wrong_cells_of_the_worst_columns() -> None:
    assert not [
        block for block in make_report([view([row("html-000")])]).blocks if "cells" in getattr(block, "name", "")
    ]
    counts = [["head", "Wins", 1, 0], ["last row", "Wins", 2, 1], ["head", "Losses", 1, 1], ["head", "Name", 1, 0]]
    rows = [row("html-000", facts={"cells": counts}), row("html-001", facts={"cells": [["last row", "Wins", 2, 2]]})]
    drawn = chart(make_report([view(rows)]), "struc_bench_cells_0")
    assert drawn.labels == ["Wins", "Losses"]
    assert {series.name: list(series.values) for series in drawn.series} == {
        "head": [0.0, 1.0], "first row": [None, None], "middle rows": [None, None], "last row": [0.75, None],
    }  # fmt: skip


def test_the_worst_and_the_best_output_of_each_format_are_shown_beside_what_was_wanted() -> None:
    scores = {"html-000": 0.5, "html-001": 0.1, "html-002": 0.9}
    facts = {"form": [["rows", "The table has 2 rows", True], ["label", "It has the label t", False]]}
    rows = [row(name, table_score=score, facts=facts) for name, score in scores.items()]
    passages = [block for block in make_report([view(rows)]).blocks if isinstance(block, Passage) and block.folded]
    assert ["worst output, html-001" in passages[0].title, "best output, html-002" in passages[1].title] == [True, True]
    both = "WANTED\n\nwanted\n\nANSWERED\n\nsaid of case[html-001-direct]"
    assert passages[0].text == f"{both}\n\nFORM\n\n[x] The table has 2 rows\n[ ] It has the label t"


def test_answers_that_were_cut_off_are_counted() -> None:
    rows = [row("html-000", facts={"finish": "length"}), row("html-001")]
    assert "in 1 of 2 cases the last answer was cut off" in render_sections([make_report([view(rows)])], [])


def test_a_run_of_errors_only_still_has_its_section() -> None:
    assert "Struc-Bench" in render_sections([make_report([view([row("html-000", "error")])])], [])
