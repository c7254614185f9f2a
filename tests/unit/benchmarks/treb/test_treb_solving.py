"""Each mode with scripted models, the prompts, and the answers read from replies."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from evalsuite.benchmarks.treb import TREB
from evalsuite.benchmarks.treb.dataset import TrebOptions
from evalsuite.benchmarks.treb.scoring import make_scorers
from evalsuite.benchmarks.treb.solving import format_table, make_solver, read_answer
from evalsuite.benchmarks.treb.tables import SourceTable
from evalsuite.core.errors import DatasetError
from evalsuite.core.protocols import JudgedScorer, Setup
from evalsuite.core.types import Completion, Score

if TYPE_CHECKING:
    from pathlib import Path

    from evalsuite.core.types import Sample, Transcript
    from evalsuite.solvers.programs import ModeSolver


TABLES = {
    "sales": "city,units\nLyon,20\nPorto,15\nGhent,7\n",
    "two_headers": "a,b\nx,y\n1,2\n",
    "no_header": "5,6\n7,8\n",
    "empty": "",
}
SUM = "```python\nprint(df['units'].sum())\n```"
WRONG = "```python\nprint(len(df))\n```"
CRASH = "Let me see.\n```python\nprint('42')\nprint(df['unit'].sum())\n```"
LOOP = "```python\nwhile True:\n    pass\n```"


@dataclass
class Scripted:
    """A model that says its lines in turn and remembers what it was asked."""

    lines: Sequence[str]
    finish: str = "stop"
    asked: list[Any] = field(default_factory=list)
    params: list[dict[str, Any]] = field(default_factory=list)
    name: str = "scripted"
    overrides: dict[str, Any] = field(default_factory=dict)

    async def chat(self, prompt: Any, *, tools: Any = (), **params: Any) -> Completion:
        self.asked.append([(message.role, message.content) for message in prompt])
        self.params.append(params)
        return Completion(self.lines[len(self.asked) - 1], finish_reason=self.finish)

    def peer(self, name: str, base_url: str | None = None, *, epoch: int | None = None) -> Scripted:
        raise AssertionError


@dataclass
class Case:
    transcript: Transcript
    scores: dict[str, float]
    notes: dict[str, str]
    model: Scripted
    judge: Scripted


Solve = Callable[..., Case]


@dataclass
class Solvers:
    """Solvers by their arguments, all on one event loop: a sandbox takes a second to start."""

    runner: asyncio.Runner
    made: dict[str, ModeSolver] = field(default_factory=dict)

    def __call__(self, setup: Setup) -> ModeSolver:
        return self.made.setdefault(repr(setup.args), make_solver(setup))


@pytest.fixture(scope="module")
def solvers() -> Iterator[Solvers]:
    with asyncio.Runner() as runner:
        solvers = Solvers(runner)
        yield solvers
        for each in solvers.made.values():
            runner.run(each.aclose())


@pytest.fixture
def solve(tmp_path_factory: pytest.TempPathFactory, solvers: Solvers) -> Solve:
    """Solves and scores one record in one mode, as a run does."""

    def solve(mode: str, *lines: str, judged: str = r"\boxed{10}", args: Any = None, **changes: Any) -> Case:
        folder = tmp_path_factory.mktemp("treb")
        (folder / "csv").mkdir()
        for name, text in TABLES.items():
            (folder / "csv" / f"{name}.csv").write_text(text, encoding="utf-8")
        record: dict[str, Any] = {
            "id": "Table_General_Operations|test|1",
            "file_path": ["csv/sales.csv"],
            "question": "How many units were sold?",
            "answer": "42",
            "columnslable": [1],
            "number_answer": 42,
        } | changes
        name = record["id"].split("|")[0]
        (folder / f"{name}.json").write_text(json.dumps([record]), encoding="utf-8")
        setup = Setup("scripted", judge="judge", data=folder, modes=(mode,), args=args or {})
        [sample] = TREB.load(setup).samples
        judge = Scripted([judged] * 3, name="judge")
        return solvers.runner.run(_case(solvers(setup), sample, Scripted(lines), judge))

    return solve


async def _case(solver: ModeSolver, sample: Sample, model: Scripted, judge: Scripted) -> Case:
    transcript = await solver(sample, model)
    found: dict[str, float | Score] = {}
    for scorer in make_scorers(Setup("scripted", judge="judge")):
        if isinstance(scorer, JudgedScorer):
            found |= await scorer.judged(sample, transcript, judge)
        else:
            found |= scorer(sample, transcript)  # type: ignore[arg-type] # its scorers name their scores
    values = {name: score.value if isinstance(score, Score) else score for name, score in found.items()}
    notes = {name: score.note for name, score in found.items() if isinstance(score, Score)}
    return Case(transcript, values, notes, model, judge)


def test_programs_over_official_files_find_the_papers_packages(tmp_path: Path) -> None:
    assert make_solver(Setup("m", data=tmp_path)).sandbox.usual == "treb-2025"
    assert make_solver(Setup("m")).sandbox.usual == "own"


def test_a_right_program_scores_full_on_every_metric(solve: Solve) -> None:
    case = solve("pot", SUM)
    assert case.transcript.answer == "42"
    assert case.scores == {"rouge_l": 1.0, "bleu": 1.0, "exact_match": 1.0, "judge": 1.0}


def test_a_wrong_program_is_judged_by_what_it_prints(solve: Solve) -> None:
    case = solve("pot", WRONG, judged=r"Not 42. \boxed{0.5/10}")
    assert case.transcript.answer == "3"
    assert case.scores == {"rouge_l": 0.0, "bleu": 0.0, "exact_match": 0.0, "judge": 0.05}


@pytest.mark.parametrize(
    ("line", "note"),
    [
        (CRASH, "its program failed"),
        (LOOP, "its program took too long"),
        ("The answer is 42.", "the model wrote no program"),
    ],
)
def test_a_program_that_is_missing_or_fails_is_zero_on_every_metric(solve: Solve, line: str, note: str) -> None:
    case = solve("pot", line, args={"timeout": 3.0})
    assert case.scores == {"rouge_l": 0.0, "bleu": 0.0, "exact_match": 0.0, "judge": 0.0}
    assert set(case.notes.values()) == {note}
    assert case.judge.asked == []


def test_the_last_program_counts(solve: Solve) -> None:
    assert solve("pot", f"{WRONG}\nor rather\n{SUM}").transcript.answer == "42"


def test_reloading_exiting_and_installing_do_no_harm(solve: Solve) -> None:
    program = "import os\nos.system('pip install pandas')\nprint(df['units'].sum())\nexit()"
    assert solve("pot", f"```python\n{program}\n```").scores["exact_match"] == 1.0


def test_a_programs_prompt_shows_the_frame_and_no_path(solve: Solve) -> None:
    [asked] = solve("pot", SUM).model.asked
    assert [role for role, _ in asked] == ["system", "user"]
    shown = asked[1][1]
    for part in ("3 rows and 2 columns", "'city', 'units'", "RangeIndex", "Ghent", "How many units were sold?"):
        assert part in shown
    assert "treb" not in str(asked)
    assert ".csv" not in str(asked)


def test_a_failed_round_is_mended_in_the_next_whose_variables_live_on(solve: Solve) -> None:
    first = "```python\ntotal = df['units'].sum()\nprint(totl)\n```"
    case = solve("icot", first, "I misspelt it.\n```python\nprint(total)\n```", r"So \boxed{42}.")
    assert case.transcript.answer == "42"
    assert case.scores["exact_match"] == 1.0
    assert [event["error"] is None for event in case.transcript.events] == [False, True]
    assert "NameError" in case.model.asked[1][-1][1]
    assert "42" in case.model.asked[2][-1][1]


def test_three_rounds_of_code_are_followed_by_one_without(solve: Solve) -> None:
    case = solve("icot", SUM, SUM, SUM, f"{WRONG} The total is 42")
    assert len(case.transcript.events) == 3
    assert len(case.model.asked) == 4
    assert case.transcript.answer.endswith("The total is 42")


def test_a_crashing_program_costs_an_interleaved_case_nothing_by_itself(solve: Solve) -> None:
    case = solve("icot", CRASH, r"It must be \boxed{42}.")
    assert case.transcript.facts["program"] == "failed"
    assert case.scores["exact_match"] == 1.0


def test_a_looping_round_ends_and_the_case_goes_on(solve: Solve) -> None:
    case = solve("icot", LOOP, SUM, r"\boxed{42}", args={"timeout": 3.0})
    assert [event["timed_out"] for event in case.transcript.events] == [True, False]
    assert case.scores["exact_match"] == 1.0


def test_nested_braces_of_the_box_belong_to_the_answer(solve: Solve) -> None:
    assert solve("icot", r"\boxed{1} no, \boxed{\text{42 \{units\}}}").transcript.answer == r"\text{42 \{units\}}"


@pytest.mark.parametrize(("mode", "table"), [("tcot_markdown", "| Porto | 15 |"), ("tcot_html", "<td>Porto</td>")])
def test_in_words_the_table_stands_in_the_prompt(solve: Solve, mode: str, table: str) -> None:
    case = solve(mode, '```json\n{"thought": "20 + 15 + 7", "answer": 42}\n```')
    assert table in case.model.asked[0][1][1]
    assert case.scores == {"rouge_l": 1.0, "bleu": 1.0, "exact_match": 1.0, "judge": 1.0}
    assert case.transcript.facts["json"] == "found"


def test_words_without_the_json_object_are_the_answer_whole(solve: Solve) -> None:
    case = solve("tcot_html", "It is 42.")
    assert case.transcript.answer == "It is 42."
    assert case.transcript.facts["json"] == "missing"
    assert case.scores["exact_match"] == 0.0


def test_an_empty_answer_is_zero_without_asking_the_judge(solve: Solve) -> None:
    case = solve("tcot_html", " ")
    assert case.scores["judge"] == 0.0
    assert case.judge.asked == []


def test_a_judge_is_shown_no_more_of_an_endless_print_than_fits(solve: Solve) -> None:
    case = solve("pot", "```python\nprint('42 ' * 50_000)\n```", judged=r"\boxed{0}")
    assert len(case.judge.asked[0][1][1]) < 9_000
    assert case.scores["judge"] == 0.0


def test_a_summary_is_taken_as_it_is_written(solve: Solve) -> None:
    said = 'Sales: {"answer": "no"}'
    case = solve("tcot_html", said, id="Table_Summary|test|1", number_answer="")
    assert case.transcript.answer == said
    assert "exact_match" not in case.scores


def test_counting_from_one_is_said_for_queries_in_every_mode(solve: Solve) -> None:
    for mode, line in (("tcot_markdown", "x"), ("pot", "x"), ("icot", "x")):
        query = solve(mode, line, id="Table_Query|test|1").model.asked[0][0][1]
        other = solve(mode, line).model.asked[0][0][1]
        assert "counted from 1" in query
        assert "counted from 1" not in other


def test_a_question_of_language_is_asked_as_it_stands(solve: Solve) -> None:
    case = solve("tcot", "42", id="Understanding|test|1")
    assert case.model.asked == [[("user", "How many units were sold?")]]
    assert case.scores["exact_match"] == 1.0


def test_instruction_following_has_its_rules_and_no_other_metric(solve: Solve) -> None:
    rules = [{"check": "equals", "text": "OK"}]
    assert solve("tcot", "OK", id="Instruction_Following|t|1", rules=rules).scores == {"instruction_following": 1.0}
    case = solve("tcot", "Okay", id="Instruction_Following|t|1", rules=rules)
    assert case.scores == {"instruction_following": 0.0}
    assert "equals" in case.notes["instruction_following"]


def test_two_header_rows_no_header_and_several_tables_reach_the_program(solve: Solve) -> None:
    program = "```python\nprint(df.columns[1], df2[1].sum(), df3['n'].iloc[0])\n```"
    files = ["csv/two_headers.csv", "csv/no_header.csv"]
    markdown = ["", "", "| n |\n|---|\n| 30 |"]
    case = solve("pot", program, file_path=files, columnslable=[2, 0, 1], Table_markdown=markdown)
    assert case.transcript.answer == "('b', 'y') 14 30"


def test_limits_on_tokens_and_temperature_reach_the_model(solve: Solve) -> None:
    assert solve("pot", SUM).model.params == [{"max_tokens": 2048, "temperature": 0.2}]
    args = {"max_tokens": 50, "temperature": None}
    assert solve("icot", SUM, "42", args=args).model.params == [{"max_tokens": 50, "temperature": None}] * 2


@pytest.mark.parametrize("model", ["local:smollm2", "gpt-4"])
def test_every_model_is_asked_alike(model: str) -> None:
    assert TrebOptions.from_setup(Setup(model, modes=("auto",))) == TrebOptions()


def test_a_table_that_is_none_is_an_error_that_names_the_file(solve: Solve) -> None:
    with pytest.raises(DatasetError, match=r"empty\.csv: found 0 rows, fewer than its 1 header row"):
        solve("tcot_html", "x", file_path=["csv/empty.csv"])


def table(rows: int, columns: int = 2, cell: str = "cell") -> SourceTable:
    header = tuple(f"c{number}" for number in range(columns))
    return SourceTable((header,), tuple((f"r{number}", *[cell] * (columns - 1)) for number in range(rows)))


def test_a_small_table_is_shown_whole_in_the_words_of_the_record() -> None:
    assert format_table(table(49, 19), "| as given |", "tcot_markdown", 4096) == "| as given |"


def test_from_fifty_rows_on_the_first_fifty_are_shown_and_the_rest_is_counted() -> None:
    whole, cut = (format_table(table(rows), "", "tcot_markdown", 10**6) for rows in (50, 51))
    assert whole == table(50).format_markdown()
    assert "| r49 |" in cut
    assert "| r50 |" not in cut
    assert cut.endswith("(the first 50 of 51 rows)")


def test_twenty_columns_make_a_table_large() -> None:
    assert format_table(table(3, 20), "| as given |", "tcot_markdown", 10**6) == table(3, 20).format_markdown()


def test_html_stays_whole_when_rows_are_cut() -> None:
    text = format_table(table(200), "", "tcot_html", 500)
    assert "</tbody></table>\n(the first" in text
    assert len(text) < 550


def test_a_small_table_with_enormous_cells_is_cut_too() -> None:
    text = format_table(table(10, 2, "x" * 3000), "y" * 30_000, "tcot_markdown", 4096)
    assert "(the first 1 of 10 rows)" in text


def test_a_header_longer_than_the_limit_is_clipped() -> None:
    monster = SourceTable((("h" * 9000, "b"),), (("1", "2"),))
    assert len(format_table(monster, "", "tcot_html", 4096)) < 4200


@given(st.integers(0, 120), st.integers(1, 25), st.integers(20, 5000), st.sampled_from(["tcot_html", "tcot_markdown"]))
def test_no_table_takes_more_than_its_limit(rows: int, columns: int, limit: int, mode: str) -> None:
    text = format_table(table(rows, columns), "", mode, limit)
    assert len(text.split("\n(the first")[0]) <= limit + len("...")


@pytest.mark.parametrize(
    ("text", "answer"),
    [
        ('```json\n{"thought": "two rows", "answer": "42"}\n```', "42"),
        ('I think {"thought": "a", "answer": 42} is right.', "42"),
        ('{"thought": "a", "answer": "first"} no: {"thought": "b", "answer": "second"}', "second"),
        ('{"thought": "a", "answer": "x"} and then {"note": "no answer here"}', "x"),
        ('{"thought": "braces { } and \\" quotes", "answer": "y"}', "y"),
        ('{"thought": "line\nbreak", "answer": "z"}', "z"),
        ('{"thought": "a", "answer": ["Lyon", "Porto", 3]}', "Lyon, Porto, 3"),
        ('{"thought": "a", "answer": true}', "true"),
        ('{"thought": "a", "answer": {"city": "里昂"}}', '{"city": "里昂"}'),
        ('{"answer": " padded "}', "padded"),
        (r'{"answer": "\\boxed{1{,}234}"}', "1,234"),
        (r'{"answer": "\boxed{\text{Paris}}"}', "Paris"),
        (r'{"answer": "$\boxed{12.5\%}$."}', "12.5%"),
        (r'{"thought": "a\nb", "answer": "12.5\%"}', r"12.5\%"),
        (r'{"answer": "\\boxed{1} or \\boxed{2}"}', r"\boxed{1} or \boxed{2}"),
        (r'{"answer": "two\nlines"}', "two\nlines"),
    ],
)
def test_the_last_json_object_with_an_answer_counts(text: str, answer: str) -> None:
    assert read_answer(text) == (answer, True)


@pytest.mark.parametrize("text", ["just 42", '{"thought": "cut off', '["answer"]', "{answer: 42}", '{"answer"}', ""])
def test_without_such_an_object_the_text_is_the_answer(text: str) -> None:
    assert read_answer(f" {text}\n") == (text, False)


def test_a_box_around_a_whole_text_is_taken_off() -> None:
    assert read_answer(r"$\boxed{5}$") == ("5", False)
    assert read_answer(r"It is \boxed{5}.") == (r"It is \boxed{5}.", False)
    assert read_answer(r"\boxed{5") == (r"\boxed{5", False)


@given(st.text(), st.text(max_size=30).filter(lambda text: "{" not in text), st.text(max_size=30))
def test_any_answer_is_found_within_any_talk(answer: str, before: str, thought: str) -> None:
    said = f"{before}\n```json\n{json.dumps({'thought': thought, 'answer': answer})}\n```"
    assert read_answer(said) == (answer.strip(), True)


@given(st.text())
def test_no_text_makes_the_parser_fail(text: str) -> None:
    read_answer(text)


def test_ever_deeper_objects_are_given_up_and_the_text_kept() -> None:
    text = '{"a":' * 3000
    assert read_answer(text) == (text, False)


def test_an_answer_of_lists_in_lists_without_end_is_no_answer() -> None:
    text = '{"answer": ' + "[" * 200_000 + "]" * 200_000 + "}"
    assert read_answer(text) == (text, False)
