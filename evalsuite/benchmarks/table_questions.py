"""Questions about tables from published data sets, answered by programs or by SQL queries.

Sources: WikiTableQuestions (Pasupat and Liang, ACL 2015), TabFact (Chen et al., arXiv 1909.02164), TableBench (Wu et
al., arXiv 2408.09174), DataBench (Osés Grijalba et al., LREC-COLING 2024), Spider (Yu et al., arXiv 1809.08887) and
BIRD (Li et al., arXiv 2305.03111). No data set is shipped. Each data set is defined by its files, the fields of its
items, and the locations of its tables. The model writes a program as in TReB's PoT mode, and `denotation` compares the
program's output with the answer.
"""

import csv
import io
import re
import sqlite3
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache, partial
from keyword import iskeyword
from pathlib import Path, PurePosixPath
from typing import Any

from evalsuite.core.errors import DatasetError, SandboxError, SettingsError
from evalsuite.core.keywords import read_options
from evalsuite.core.protocols import Benchmark, Dataset, Model, Setup
from evalsuite.core.threads import run_in_thread
from evalsuite.core.types import SHARE, Sample, Score, Transcript
from evalsuite.samples.files import (
    FILE,
    READERS,
    Field,
    PublishedDataset,
    SampleFields,
    make_label_reader,
    open_database,
    read_rows,
    read_table_sql,
    read_text_field,
)
from evalsuite.samples.items import SourceItem, parse_json, read_json, read_text, require_item
from evalsuite.sandbox import Sandbox, TableFile
from evalsuite.scorers.answers import denotation
from evalsuite.scorers.sql import Match, SqlExecution, sql_execution
from evalsuite.scorers.sql_inside import FAILURES, is_row_order_significant, run_query
from evalsuite.solvers.programs import PROGRAM_PROMPT, ModeSolver, program_of_thought
from evalsuite.solvers.single_call import generate

_Item = Mapping[str, Any]
TableReader = Callable[[Path], Mapping[str, TableFile]]

PROGRAM = f"{PROGRAM_PROMPT} If the answer has several values, print each on a line of its own."
FACT = "Is this statement about the table {!r} true? Print yes or no."
ROWS = (
    "Print one line per row of the result, its cells separated by tabs. Print None for a missing cell, and `no rows` "
    "if the result is empty."
)
QUERY_PROMPT = """\
Write one SQLite query that answers the question about this database:

{schema}

Question: {question}

Give the query in one block that starts with ```sql and ends with ```."""
MOST_ROWS, MOST_BYTES, QUERY_SECONDS = 200, 64 << 20, 30.0
"""Maximum rows that a program must print, maximum bytes of its database, and time limit of the reference query."""


@dataclass(frozen=True, slots=True)
class TableOptions:
    """The arguments of `@benchmark("tabfact", ...)` and of the other data sets."""

    file: str | None = None  # File of questions in the data set's folder, or a glob pattern; None selects the test set.
    max_tokens: int = 1024
    temperature: float | None = 0.0
    timeout: float = 30.0  # Seconds for one program or query.


@dataclass(frozen=True, slots=True)
class TableSet:
    """A published data set: where its questions are, how its tables are read, and how answers are compared."""

    title: str
    source: PublishedDataset
    read: TableReader
    distinct: bool = False  # Whether repeated values of an answer count only once in comparisons.
    match: Match | None = None  # The rule that compares results of SQL queries; None if the set has no queries.

    @property
    def modes(self) -> dict[str, str]:
        """The modes; the first mode is the default."""
        sql = {"sql": "the model writes an SQL query, which is executed"} if self.match else {}
        return {**sql, "pot": "the model writes one program, whose output is the answer"}


def load_dataset(name: str, setup: Setup) -> Dataset:
    """Load one sample per question and mode."""
    table_set, options = SETS[name], read_options(name, TableOptions, setup.args)
    if setup.data is None:
        raise SettingsError(f"{name} has no shipped samples; name the folder of its files with --data=DIR (DIR/{name})")
    source = replace(table_set.source, files=(options.file,)) if options.file else table_set.source
    paths, items = source.find_files(setup.data), list(source.iter_samples(setup.data))
    for item in items:
        table = item.metadata.get("table")
        if isinstance(table, str):
            parts = PurePosixPath(table)
            if parts.is_absolute() or ".." in parts.parts or not (setup.data / table).is_file():
                raise DatasetError(setup.data, f"sample {item.id}", f"the table {table!r:.80}", "a file in this folder")
    samples = [
        made for mode in setup.modes for item in items if (made := _make_mode_sample(item, mode, setup, setup.data))
    ]
    left_out = len(items) * len(setup.modes) - len(samples)
    note = f"; {left_out} left out in pot (over {MOST_ROWS} rows or {MOST_BYTES >> 20} MiB)" if left_out else ""
    return Dataset(samples, (paths[0].name if len(paths) == 1 else f"{len(paths)} files") + note)


def _make_mode_sample(sample: Sample, mode: str, setup: Setup, folder: Path) -> Sample | None:
    """Return the sample for a mode; None if its database or its answer is too large for the mode `pot`."""
    name = f"{sample.id}-{mode}" if len(setup.modes) > 1 else sample.id
    sample = replace(sample, id=name, tags={**sample.tags, "mode": mode, "cluster": sample.id})
    if mode == "sql" or "database" not in sample.metadata:
        return sample
    query, path = str(sample.target), folder / sample.metadata["table"]
    if path.stat().st_size > MOST_BYTES:
        return None
    try:
        rows = run_query(path.read_bytes(), query, QUERY_SECONDS)
    except FAILURES as error:
        raise DatasetError(path, f"sample {name}", str(error), f"a result of {query}") from error
    if len(rows) > MOST_ROWS:
        return None
    target = ["\t".join(" ".join(str(cell).split()) for cell in row) for row in rows] or "no rows"
    about = {**sample.metadata, "ordered": is_row_order_significant(query)}
    return replace(sample, input=f"{sample.input}\n\n{ROWS}", target=target, metadata=about)


def make_solver(name: str, setup: Setup) -> ModeSolver:
    """Make the solver of a run."""
    options, folder = read_options(name, TableOptions, setup.args), setup.data or Path()
    params: dict[str, Any] = {"max_tokens": options.max_tokens, "temperature": options.temperature}
    read = lru_cache(maxsize=4)(SETS[name].read)

    def read_sample_tables(sample: Sample) -> Mapping[str, TableFile]:
        table = sample.metadata["table"]
        if not isinstance(table, str):
            return {"df": format_csv([table["columns"], *table["data"]])}
        try:
            return read(folder / table)
        except (DatasetError, csv.Error, sqlite3.Error) as error:
            raise SandboxError(f"the table {table} cannot be read: {error}") from error

    query, sandbox = generate(**params), Sandbox()

    async def request_query(sample: Sample, model: Model) -> Transcript:
        schema = await run_in_thread(read_schema, folder / sample.metadata["table"])
        return await query(replace(sample, input=QUERY_PROMPT.format(schema=schema, question=sample.input)), model)

    shared: dict[str, Any] = {"tables": read_sample_tables, "timeout": options.timeout, "sandbox": sandbox}
    program = program_of_thought(prompt=PROGRAM, **shared, **params)
    return ModeSolver({"pot": program, "sql": request_query}, sandbox)


@dataclass(frozen=True, slots=True)
class TableScores:
    """Scores a program's output by the metric `denotation`, and an SQL query by `sql_execution`."""

    execution: SqlExecution
    distinct: bool

    async def __call__(self, sample: Sample, transcript: Transcript) -> Mapping[str, float | Score]:
        if sample.tags["mode"] == "sql":
            return await self.execution(sample, transcript)
        return denotation(ordered=sample.metadata.get("ordered", False), distinct=self.distinct)(sample, transcript)

    def sandbox_for(self, sample: Sample) -> Any:
        """Return the sandbox for a sample's query; None in the mode `pot`."""
        return self.execution.sandbox if sample.tags["mode"] == "sql" else None

    async def aclose(self) -> None:
        await self.execution.aclose()


def make_scorers(name: str, setup: Setup) -> Sequence[Any]:
    """Make the scorers of a run."""
    options, table_set = read_options(name, TableOptions, setup.args), SETS[name]
    execution = sql_execution(match=table_set.match or "spider", timeout=options.timeout, root=setup.data or ".")
    return [TableScores(execution, table_set.distinct)]


def format_csv(rows: Iterable[Sequence[Any]]) -> TableFile:
    """Write rows as CSV; the first row has the column names, and None is an empty cell."""
    text = io.StringIO()
    csv.writer(text, lineterminator="\n").writerows(rows)
    return TableFile(text.getvalue().encode("utf-8", "replace"))


def _read_delimited_table(path: Path, **form: Any) -> Mapping[str, TableFile]:
    return {"df": format_csv(csv.reader(io.StringIO(read_text(path), newline=""), **form))}


def _read_table_by_suffix(path: Path) -> Mapping[str, TableFile]:
    items = [item.fields for item in READERS[path.suffix.lower()](path)]
    return {"df": format_csv([list(items[0]) if items else [], *(list(item.values()) for item in items)])}


def _read_database(path: Path) -> Mapping[str, TableFile]:
    """Read the tables of a database, keyed by variable names that are made of the tables' names."""
    tables: dict[str, TableFile] = {}
    with open_database(path) as database:
        for name in read_table_sql(database):
            variable = re.sub(r"^(?=\d)|\W", "_", name) + "_" * iskeyword(name)
            variable += f"_{len(tables)}" if variable in tables else ""
            tables[variable] = format_csv(read_rows(database, name))
    return tables


def read_schema(path: Path) -> str:
    """Return the statements that create a database's tables."""
    try:
        with open_database(path) as database:
            return "\n\n".join(read_table_sql(database).values())
    except sqlite3.Error as error:
        raise SandboxError(f"the database {path} cannot be read: {error}") from error


_ESCAPES = {r"\n": "\n", r"\p": "|", r"\\": "\\"}


def _unescape_cell(text: str) -> str:
    return re.sub(r"\\[np\\]", lambda escape: _ESCAPES[escape[0]], text)


def _read_wiki_questions(path: Path) -> Iterator[SourceItem]:
    """Read the tab-separated questions of WikiTableQuestions; quotes are literal."""
    names, *lines = (line.split("\t") for line in read_text(path).split("\n"))
    for number, values in enumerate(lines, 2):
        if values != [""]:
            if len(values) != len(names):
                raise DatasetError(path, f"line {number}", f"{len(values)} fields", f"{len(names)}, as in line 1")
            yield SourceItem(dict(zip(names, values, strict=True)), path, f"line {number}")


def _read_tabfact(path: Path) -> Iterator[SourceItem]:
    """Read TabFact's statements; for each table, the file has lists of statements and labels, and a caption."""
    for table, found in read_json(path, dict).items():
        try:
            statements, labels, *_, caption = found
            pairs = list(zip(statements, labels, strict=True))
        except (TypeError, ValueError) as error:
            expected = "a list of statements, a list with a label for each, and a caption"
            raise DatasetError(path, f"table {table}", str(error), expected) from error
        for number, (statement, label) in enumerate(pairs, 1):
            about = {"id": f"{table}-{number}", "table": f"data/all_csv/{table}", "caption": caption}
            fields = {**about, "statement": statement, "label": label}
            yield SourceItem(fields, path, f"table {table}, statement {number}")


def _read_tablebench(path: Path) -> Iterator[SourceItem]:
    """Read TableBench's questions; leave out questions about charts, because their answers are code."""
    for item in READERS[path.suffix.lower()](path):
        if item.fields.get("qtype") != "Visualization":
            table = item.fields.get("table")
            where = item.locate("table")
            found = require_item(parse_json(table, path, where) if isinstance(table, str) else table, path, where)
            shown = {"columns": found.read("columns", list), "data": found.read_list("data", list)}
            yield replace(item, fields={**item.fields, "table": shown})


def _read_databench_answers(item: _Item) -> str | list[str]:
    """Read an answer of DataBench; a list is in Python's syntax, but its items may lack quotes."""
    answer = str(item["answer"]).strip()
    if not read_text_field(item, "type").startswith("list"):
        return answer
    inner = " ".join(answer.removeprefix("[").removesuffix("]").split())
    quote = '"' if inner[:1] == '"' else "'"
    return next(csv.reader([inner], quotechar=quote, skipinitialspace=True), []) or "[]"


def _find_databench_table(item: _Item) -> str:
    """Return the path of a DataBench table: beside the file of questions, or in the folder of its data set."""
    folder, _, name = item[FILE].rpartition("/")
    named = f"data/{read_text_field(item, 'dataset')}/all.parquet"
    return f"{folder}/all{name.removeprefix('qa')}" if name.startswith("qa.") else named


def _make_question_set(
    files: Sequence[str],
    question: Field,
    answers: Field,
    table: Field,
    read: Callable[[Path], Iterator[SourceItem]] | None = None,
    **tags: str,
) -> PublishedDataset:
    """Make a published data set of questions about tables; items have the field `id` only if `read` is given."""
    fields = SampleFields(question, answers, "id" if read else None, tags, {"table": table})
    return PublishedDataset(tuple(files), fields, read)


def _make_query_set(files: tuple[str, ...], folder: str, query: str, id_: str | None, **tags: str) -> PublishedDataset:
    """Make a published data set of questions and SQL queries; its databases are in `folder`."""

    def make_database_path(item: _Item) -> str:
        name = read_text_field(item, "db_id")
        return f"{folder}/{name}/{name}.sqlite"

    def join_question_and_evidence(item: _Item) -> str:
        return "\n\n".join(filter(None, (read_text_field(item, "question"), item.get("evidence"))))

    about = {"table": make_database_path, "database": make_database_path}
    return PublishedDataset(
        files, SampleFields(join_question_and_evidence, query, id_, {"database": "db_id", **tags}, about)
    )


_WIKI = _make_question_set(
    ["data/pristine-unseen-tables.tsv"],
    lambda item: _unescape_cell(item["utterance"]),
    lambda item: [*map(_unescape_cell, item["targetValue"].split("|"))],
    "context",
    _read_wiki_questions,
)
_FACTS = _make_question_set(
    ["tokenized_data/test_examples.json"],
    lambda item: f"{FACT.format(item['caption'])}\n\n{item['statement']}",
    make_label_reader("label", {1: "yes", 0: "no"}),
    "table",
    _read_tabfact,
)
_BENCH = _make_question_set(
    ["TableBench.jsonl", "TableBench_PoT.jsonl", "**/TableBench*.jsonl"],
    "question",
    lambda item: re.split(r",\s+", str(item["answer"])),
    "table",
    _read_tablebench,
    type="qtype",
    subtype="qsubtype",
)
_DATABENCH = _make_question_set(
    ["**/qa.*"], "question", _read_databench_answers, _find_databench_table, type="type", dataset="dataset"
)
_SPIDER = _make_query_set(("dev.json",), "database", "query", None)
_BIRD_FILES = ("dev.json", "dev_20*.json", "mini_dev_sqlite.json")
_BIRD = _make_query_set(_BIRD_FILES, "dev_databases", "SQL", "question_id", difficulty="difficulty")
_read_wiki_table = partial(_read_delimited_table, escapechar="\\", doublequote=False)
_read_fact_table = partial(_read_delimited_table, delimiter="#", quoting=csv.QUOTE_NONE)
SETS = {
    "wikitablequestions": TableSet("WikiTableQuestions", _WIKI, _read_wiki_table, distinct=True),
    "tabfact": TableSet("TabFact", _FACTS, _read_fact_table),
    "tablebench": TableSet("TableBench", _BENCH, _read_table_by_suffix),
    "databench": TableSet("DataBench", _DATABENCH, _read_table_by_suffix),
    "spider": TableSet("Spider", _SPIDER, _read_database, match="spider"),
    "bird": TableSet("BIRD", _BIRD, _read_database, match="bird"),
}


WIKITABLEQUESTIONS, TABFACT, TABLEBENCH, DATABENCH, SPIDER, BIRD = (
    Benchmark(
        name=name,
        title=table_set.title,
        load=partial(load_dataset, name),
        solver=partial(make_solver, name),
        scorers=partial(make_scorers, name),
        modes=table_set.modes,
        default_modes=tuple(table_set.modes)[:1],
        metrics={"*": SHARE},
    )
    for name, table_set in SETS.items()
)
