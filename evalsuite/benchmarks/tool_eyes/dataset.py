"""ToolEyes' options, names of scores and samples, and the turns of an episode as read from a transcript."""

import json
import re
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path, PurePosixPath
from typing import Any, Literal

from evalsuite.core.errors import DatasetError, SettingsError
from evalsuite.core.keywords import read_options
from evalsuite.core.protocols import Dataset, Setup
from evalsuite.core.types import Sample, Score, Transcript
from evalsuite.samples.items import SourceItem, read_json_records, require_item
from evalsuite.solvers.episode import MAX_TURNS, OBSERVATION_LIMIT
from evalsuite.tools.execution import ASK_TO_USER, FINISH, ToolDocument, list_tool_documents
from evalsuite.tools.live import find_code_executing_tools

RULES = ("format_alignment", "reality", "finished")  # The scores that need no judge.
# The paper's five capabilities; `OVERALL` is their mean.
CAPABILITIES = (
    *("format_alignment", "intent_comprehension", "behaviour_planning", "tool_selection", "answer_organisation"),
)
OVERALL = "overall"
RELEASED_MODES = ("released", "released_5shot")  # Modes with the prompts and formulas of the authors' released code.


# A call with one of these faults is not real in the score `reality`. A value of a wrong type does not make a call
# unreal, because the published documents declare all parameters as strings.
_UNREAL = {"unknown_tool", "unknown_parameter", "missing_parameter"}


@dataclass(frozen=True, slots=True)
class Step:
    """One turn of the model: its thought, its fault (None if the turn is well-formed), and the events of its calls."""

    thought: str
    fault: str | None
    calls: Sequence[Mapping[str, Any]]

    @property
    def is_well_formed(self) -> bool:
        return self.fault is None


def is_real_call(call: Mapping[str, Any]) -> bool:
    """Tell whether a call names a documented tool, has all required parameters, and has no unknown parameters."""
    return not _UNREAL & set(call["faults"])


def read_steps(transcript: Transcript) -> list[Step]:
    """Read the model's turns with their calls from a transcript."""
    calls: dict[int, list[Mapping[str, Any]]] = {}
    for event in transcript.events:
        if event["kind"] == "call":
            calls.setdefault(event["turn"], []).append(event)
    return [
        Step(event["thought"], event["fault"], calls.get(event["turn"], []))
        for event in transcript.events
        if event["kind"] == "turn"
    ]


def is_finished(transcript: Transcript) -> bool:
    """Tell whether the model called finish within the limit of turns."""
    return bool(transcript.facts["ended"] == "finish")


def combine_capabilities(
    parts: Mapping[str, float | None], selection: float, alignment: float, log: Sequence[Mapping[str, Any]]
) -> dict[str, float | Score]:
    """Return the judged capabilities, their parts, and `overall`, the mean of all five capabilities.

    Args:
        parts: the judge's scores `intent`, `validity`, `integrity`, `match` and `quality` in [0, 1]; None if missing.
        log: the judge's questions and answers, which are stored with the score `intent_comprehension`.
    """
    known = {name: value for name, value in parts.items() if value is not None}
    intent = known.pop("intent")
    capabilities = {
        "intent_comprehension": intent,
        "behaviour_planning": known["validity"] * known["integrity"],
        "tool_selection": selection,
        "answer_organisation": known.get("quality", 0.0),
    }
    overall = (alignment + sum(capabilities.values())) / len(CAPABILITIES)
    return {**capabilities, **known, "intent_comprehension": Score(intent, log=log), OVERALL: overall}


def list_judge_log(logs: Mapping[str, Sequence[Mapping[str, Any]]]) -> list[Mapping[str, Any]]:
    """Join the logs of a judge's questions, in the order of the questions' names."""
    return [{"speaker": f"judge of {name}", **entry} for name in sorted(logs) for entry in logs[name]]


Executors = Literal["python", "simulated", "recorded", "live"]


@dataclass(frozen=True, slots=True)
class ToolEyesOptions:
    """The keyword arguments of `@benchmark(TOOL_EYES, ...)`."""

    queries: int | None = None  # Number of queries per scenario, the first ones in the file; None means all queries.
    # How the published tools are executed: `simulated`, `recorded` or `live`. evalsuite's own tools always run as
    # Python code.
    executor: Executors | None = None
    # Folder that stores the observations of simulated tools and users for later runs; None selects the reports folder.
    observations: str | None = None
    recording: str | None = None  # With the executor `recorded`: the folder of the run whose observations are replayed.
    library: str | None = None  # For the executor `live`: the published folder `Tool_Library` with the `tool.py` files.
    allow_network: bool = False  # Must be True for the executor `live`, whose tools use the internet.
    # With the executor `live`, some tools execute code that the model writes. True runs these tools. False leaves out
    # queries that have such a tool; None raises an error if any query has one.
    allow_code: bool | None = None
    max_turns: int = MAX_TURNS  # Maximum number of turns of the model; 9 in the paper.
    # Maximum consecutive malformed turns before an episode ends; None means no limit, as in the paper.
    patience: int | None = None
    # Maximum tokens per turn; None means 512, or 1,024 in modes with the authors' prompts, as in the authors' code.
    max_tokens: int | None = None
    observation_limit: int = OBSERVATION_LIMIT  # Maximum length of an observation in characters.

    def __post_init__(self) -> None:
        for name in ("queries", "max_turns", "patience", "max_tokens", "observation_limit"):
            value = getattr(self, name)
            absent = value is None and name in {"queries", "patience", "max_tokens"}
            if not absent and (type(value) is not int or value < 1):
                raise SettingsError(f"tool_eyes was given {name}={value!r}; it must be a whole number of at least 1")
        # Refuse texts such as "False", because they would count as true.
        for name in ("allow_network", "allow_code"):
            value = getattr(self, name)
            if type(value) is not bool and (value is not None or name == "allow_network"):
                raise SettingsError(f"tool_eyes was given {name}={value!r}; it must be True or False")


QUERIES = "scenario_data_raw.json"
SHIPPED = Path(__file__).parent / "data" / "queries.json"


def load_dataset(setup: Setup) -> Dataset:
    """Load one sample per query and mode."""
    if setup.data:
        in_repository = setup.data / "Test_Data" / QUERIES
        path = in_repository if in_repository.exists() else setup.data / QUERIES
        documents, source = read_documents(setup.data / LIBRARY), path.name
    else:
        from evalsuite.benchmarks.tool_eyes.toolbox import SUBJECTS

        path, source = SHIPPED, "shipped queries"
        documents = {subject: (*list_tool_documents(kind), ASK_TO_USER, FINISH) for subject, kind in SUBJECTS.items()}
    queries = read_queries(path)
    for query in queries:
        if (subject := query.metadata["subject"]) not in documents:
            expected = f"one of the {len(documents)} subjects of {LIBRARY}"
            raise DatasetError(path, f"query {query.id}, field 'path'", repr(subject), expected)
    options = read_options("ToolEyes", ToolEyesOptions, setup.args)
    by_scenario: dict[str, list[Sample]] = {}
    for query in _select_runnable_queries(queries, options):
        by_scenario.setdefault(query.tags["scenario"], []).append(query)
    first = {query.id for own in by_scenario.values() for query in own[: options.queries]}
    chosen = [query for query in queries if query.id in first]
    if len(chosen) < len(queries):
        source += f", {len(chosen)} of {len(queries)}"
    samples = [
        replace(
            query,
            id=query.id if len(setup.modes) == 1 else f"{query.id}-{mode}",
            # All cases of a query form one cluster, whatever their modes, because their scores are not independent.
            tags={**query.tags, "mode": mode, "cluster": query.id},
            metadata={**query.metadata, "documents": [each.plain() for each in documents[query.metadata["subject"]]]},
        )
        for query in chosen
        for mode in setup.modes
    ]
    return Dataset(samples, source)


def _select_runnable_queries(queries: Sequence[Sample], options: ToolEyesOptions) -> Sequence[Sample]:
    """Leave out queries with live tools that execute the model's code, if the options exclude such tools."""
    if options.executor != "live" or not options.library or options.allow_code:
        return queries
    executing = find_code_executing_tools(Path(options.library)) & {query.metadata["subject"] for query in queries}
    if executing and options.allow_code is None:
        raise SettingsError(
            f"the live tools of {', '.join(sorted(executing))} execute code that the model writes, on this machine's "
            "network; allow it with allow_code=True, or leave their queries out with allow_code=False"
        )
    return [query for query in queries if query.metadata["subject"] not in executing]


SCENARIOS = {
    "TG": "text generation",
    "DU": "data understanding",
    "RS": "real-time search",
    "PL": "personal life",
    "IR": "information retrieval",
    "AM": "application manipulation",
    "FT": "financial transactions",
}
LIBRARY = "Tool_Library"
DOCUMENTS = "config_gpt4.json"
_NAME = re.compile(r"[A-Za-z0-9_-]{1,64}")  # Matches each name that a function may have in the OpenAI API.
_TYPES = {"string", "integer", "number", "boolean", "array", "object", "null"}


def read_queries(path: Path) -> list[Sample]:
    """Read a JSON list of objects with `query`, `path` and `scenario`; `id`, `user` and `reference` are optional.

    The field `path` names the category and subcategory of the query's tools. Only the shipped file has `user`, the
    replies of a scripted user, and `reference`, the right answer, for human readers.
    """
    counts: Counter[str] = Counter()
    queries: dict[str, Sample] = {}
    for item in read_json_records(path, expected="at least one query"):
        query = _read_query(item, counts)
        if query.id in queries:
            raise item.make_error(repr(query.id), "an id of its own", "id")
        queries[query.id] = query
    return list(queries.values())


def _read_query(item: SourceItem, scenario_counts: Counter[str]) -> Sample:
    text, scenario = (item.read(name, str) for name in ("query", "scenario"))
    if not text.strip():
        raise item.make_error(repr(text), "what the user asks for", "query")
    if scenario not in SCENARIOS:
        raise item.make_error(repr(scenario), f"one of {', '.join(SCENARIOS)}", "scenario")
    scenario_counts[scenario] += 1
    parts = PurePosixPath(item.read("path", str)).parts
    if len(parts) < 3 or parts[-3] != LIBRARY or ".." in parts[-2:]:
        expected = f"a path that ends in {LIBRARY}/<category>/<subcategory>"
        raise item.make_error(repr(item.fields["path"]), expected, "path")
    return Sample(
        id=item.read("id", str, f"{scenario.lower()}-{scenario_counts[scenario]}"),
        input=text,
        target=item.read("reference", str, None),
        tags={"scenario": scenario, "category": parts[-2], "subcategory": parts[-1]},
        metadata={
            "subject": "/".join(parts[-2:]),
            "user": item.read_list("user", str) if "user" in item.fields else [],
        },
    )


def read_documents(folder: Path) -> dict[str, tuple[ToolDocument, ...]]:
    """Read the tool documents of each subject from its file, `<category>/<subcategory>/config_gpt4.json`."""
    paths = sorted(folder.glob(f"*/*/{DOCUMENTS}"))
    if not paths:
        raise DatasetError(folder, "", "no tools", f"files <category>/<subcategory>/{DOCUMENTS}")
    return {
        "/".join(path.parts[-3:-1]): tuple(
            _read_tool_document(item) for item in read_json_records(path, "tool", expected="at least one tool")
        )
        for path in paths
    }


def _read_tool_document(item: SourceItem) -> ToolDocument:
    name = item.read("name", str)
    if not _NAME.fullmatch(name):
        raise item.make_error(repr(name[:80]), "1 to 64 letters, digits, _ and -", "name")
    item = replace(item, where=f"{item.where} ({name})")
    schema = item.read_item("parameters")
    properties = schema.read("properties", dict)
    for parameter, about in properties.items():
        shape = require_item(about, item.path, f"{item.where}, parameter {parameter!r}")
        if (kind := shape.read("type", str)) not in _TYPES:
            raise shape.make_error(f"the type {kind!r}", f"one of {', '.join(sorted(_TYPES))}")
    for parameter in schema.read_list("required", str):
        if parameter not in properties:
            raise item.make_error(f"the required parameter {parameter!r}", "one of its properties")
    if any(set(about) - {"type", "description"} for about in properties.values()):
        # Refuse schemas that would fail on the first call: those that are malformed or contain references.
        from jsonschema import Draft202012Validator
        from jsonschema.exceptions import SchemaError

        if '"$ref"' in json.dumps(schema.fields):
            raise item.make_error("a reference ($ref)", "a document that stands alone")
        try:
            Draft202012Validator.check_schema(schema.fields)
        except SchemaError as error:
            raise DatasetError(item.path, f"{item.where}, {error.json_path}", error.message, "a JSON schema") from error
    return ToolDocument(name, item.read("description", str), schema.fields, origin="/".join(item.path.parts[-3:-1]))
