"""The table of options, from which the command line, the ini keys and the run's stored settings are made."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, field, fields, replace
from typing import Any

from evalsuite.core import option_values
from evalsuite.core.errors import SettingsError
from evalsuite.core.keywords import refuse_misspelt_params
from evalsuite.core.redaction import format_public_address


@dataclass(frozen=True, slots=True)
class Settings:
    """The values of all options for one run."""

    model: str | None = None
    model_base_url: str | None = None
    model_param: tuple[str, ...] = ()
    answers: str | None = None
    judge_model: str | None = None
    judge_base_url: str | None = None
    user_model: str | None = None
    user_base_url: str | None = None
    model_key_env: str | None = None
    judge_key_env: str | None = None
    user_key_env: str | None = None
    judge_param: tuple[str, ...] = ()
    gateway: str | None = None
    batch: bool = False
    share_greedy: bool = False
    detach: bool = False
    max_connections: int = 32
    max_rpm: float | None = None
    max_tpm: float | None = None
    patience: float = 900.0
    connect_timeout: float = 30.0
    silence_timeout: float = 600.0
    call_timeout: float = 1800.0
    max_answer_mb: float = 64.0
    max_cost: float | None = None
    price: tuple[str, ...] = ()
    prices: str | None = None
    limit: int | None = None
    epochs: int | None = None
    seed: int = 0
    data: str | None = None
    mode: tuple[str, ...] = ()
    program_env: str = "auto"
    sandbox: str = "auto"
    run: str | None = None
    otel: bool = False
    reports: str = "reports"
    resume: str | None = None
    replay: str | None = None
    baseline: tuple[str, ...] = ()
    gate: tuple[str, ...] = ()
    only_gate: tuple[str, ...] = ()
    min_paired: float = 0.9
    accept_change: tuple[str, ...] = ()
    quarantine: str | None = None
    plan: bool = False
    detect: float = 0.02
    partial: bool = False
    inject: tuple[str, ...] = ()
    shard: str | None = None
    stop_when_decided: bool = False
    until_decided: bool = False
    max_error_share: float = 0.01
    allow_plain_workers: bool = False
    command_gate: tuple[str, ...] = field(default=(), compare=False)
    """Gates of the command line. A resumed run keeps these gates, but reads the gates of the ini file again."""
    given: frozenset[str] = field(default=frozenset(), compare=False)
    """Names of the settings that the user gave; the others have their defaults."""

    def __repr__(self) -> str:
        """Return a repr without secrets, because a repr ends up in tracebacks and logs."""
        shown = (f"{name}={_redact_setting(name, getattr(self, name))!r}" for name in sorted(self.given))
        return f"Settings({', '.join(shown)})"

    @property
    def can_end_early(self) -> bool:
        """Whether early decisions may end the run before all of its cases have run."""
        return self.stop_when_decided or self.until_decided

    @property
    def model_params(self) -> dict[str, Any]:
        """The values of `model_param`; numbers, true, false and null are read as JSON, all other values as text."""
        return dict(option_values.parse_parameter("--model-param", text) for text in self.model_param)

    @property
    def judge_params(self) -> dict[str, Any]:
        """The values of `judge_param`; numbers, true, false and null are read as JSON, all other values as text."""
        return dict(option_values.parse_parameter("--judge-param", text) for text in self.judge_param)

    def plain(self) -> dict[str, Any]:
        """Convert to JSON data, for workers and for the run's folder."""
        return asdict(self) | {"given": sorted(self.given)}


def _redact_setting(name: str, value: Any) -> Any:
    if name.endswith("_base_url"):
        return value and format_public_address(value)
    return tuple(text.partition("=")[0] for text in value) if name.endswith("_param") else value


TABLE = """
model MODEL  the model under test: gpt-4 (OpenAI, or any compatible server at --model-base-url; key from
    OPENAI_API_KEY), local:smollm2 (embedded), local:/path/model.gguf, litellm:provider/name,
    function:package.module:name, or KIND:name of an installed package. Default: local:smollm2 where the extra `local`
    is installed
model_base_url URL  where the model is served, for example http://127.0.0.1:8000/v1
model_param NAME=VALUE  generation parameter for every call to the model; it overrides the benchmark's own:
    --model-param temperature=0.7; may be repeated
answers FILE  score the answers of this file instead of asking a model: JSON lines with `id` and `answer` (and
    `benchmark`, if two benchmarks share an id)
judge_model MODEL  the model that judges answers, named like --model; default: no judge
judge_base_url URL  where the judge is served
user_model MODEL project  the model that plays users in conversations, named like --model; default: the judge
user_base_url URL project  where the model that plays users is served
model_key_env NAME project fresh  environment variable with the key for --model's server. Default: OPENAI_API_KEY, which
    is sent to OpenAI and to a base URL given here or in the configuration, and nowhere else
judge_key_env NAME project fresh  environment variable with the key for the judge's server
user_key_env NAME project fresh  environment variable with the key for the server of the model that plays users
judge_param NAME=VALUE  generation parameter for every call to the judge; it overrides the scorer's own: --judge-param
    max_tokens=2048; may be repeated
gateway URL fresh  call models through gateways started with `evalsuite gateway`, which hold store, limits and keys for
    many sessions. Several gateways, separated by commas, share the requests. EVALSUITE_GATEWAY_TOKEN holds the token
batch  use the server's batch interface (/v1/batches), at half the price and within a day: requests are gathered for
    a few seconds, sent together, and waited for; each further step of an episode is a further batch
share_greedy project  let equal requests with temperature 0 share one answer over all cases and epochs; the answer is
    paid once. By default, each request of a case gets a separate answer
detach fresh  with --batch, end with status 13 once everything is sent; --resume last continues
max_connections N >=1  maximum number of calls in flight, in all processes together (default 32)
max_rpm N >=0.001  maximum number of requests per minute
max_tpm N >=0.001  maximum number of tokens per minute
patience SECONDS fresh  seconds before a call gives up on a server that is down or refuses for lack of capacity (default
    900)
connect_timeout SECONDS project fresh >=0.001  seconds to wait for a connection to be established (default 30)
silence_timeout SECONDS project fresh >=0.001  seconds that a server may be silent before and within its answer (default
    600); with --model-param stream=true long answers arrive piece by piece
call_timeout SECONDS project fresh >=0.001  seconds that one call may take in total (default 1800)
max_answer_mb N project fresh >=0.001  largest answer accepted, in MiB after decompression; a larger one is cut off
    while it arrives (default 64)
max_cost USD  spend limit in US dollars, over all sessions of a run: a call that might exceed the limit is not made, and
    the remaining cases are errors
price MODEL=PROMPT/COMPLETION  a model's price in US dollars per million tokens, instead of the shipped table's: --price
    gpt-4=30/60; may be repeated
prices FILE project fresh  TOML file of models' prices, such as "gpt-6-sol" = [2.0, 10.0] for prompt and completion in
    US dollars per million tokens, instead of the shipped prices; --price takes precedence
limit N >=1  maximum number of samples per benchmark, chosen by --seed; all modes of a benchmark get the same samples
epochs K >=1  how often each sample is asked, each time as a separate case (default 1)
seed N  seed of every random choice (default 0)
data DIR  folder of official files, with one subfolder per benchmark that has the benchmark's name; a benchmark without
    a subfolder uses its shipped samples
mode [BENCHMARK=]MODE  mode in which a benchmark runs: treb=pot, or a bare name for every benchmark with this mode; may
    be repeated; an unknown name lists the available modes
program_env NAME|FILE project  packages for programs that a model writes: own (this environment's packages), treb-2025
    (pandas 2.2.3 and the other packages of TReB's release), or a file of requirements; uv builds the last two once.
    Default: treb-2025 for TReB's official files, otherwise own
sandbox TIER fresh  isolation of programs that a model writes: auto (the default: bubblewrap or else Landlock, on this
    machine), bubblewrap, landlock, docker:IMAGE, or the address of a SandboxFusion server
run NAME fresh  name of this run's folder (default: date, time and model)
otel fresh  send OpenTelemetry spans of cases, calls and scores to OTEL_EXPORTER_OTLP_ENDPOINT (extra `otel`)
reports DIR fresh  folder that holds the runs (default: reports)
resume RUN fresh  continue an interrupted run, by name or `last`: only what is missing is asked
replay RUN fresh  answer only from the store of this run, by name or `last`: no network; a missing answer is an error
baseline RUN  a run to compare with, by name or folder; a regression exits with status 11; may be repeated, for example
    with the last release and a protected one: a regression against any of them counts
gate CONDITION  a condition that decides the exit status: 'head_to_tail.accuracy >= 0.3',
    'head_to_tail[tail].hallucination <= 0.2 @95%%', 'accuracy no worse than main by 0.02', 'cost per case <= $0.01';
    may be repeated, and adds to the gates of the ini file
only_gate CONDITION fresh  like --gate, but instead of the gates of the ini file; may be repeated
min_paired SHARE project  minimum share of the questions that run and baseline have in common; with fewer, the run
    is incomplete (default 0.9)
accept_change CHANGE project  what may differ from the baseline: scorers, prompt, params, faults; otherwise a metric
    whose questions differ in one of these is not compared (status 12)
quarantine FILE project  cases that decide nothing for a while: a TOML file of [[case]] with benchmark, sample, reason
    and until (the last day); they are asked and shown, but gates and the comparison with a baseline leave them out
plan fresh  call no model: print what the collected cases will cost and, with --baseline, which loss they can show
detect LOSS project fresh  for --plan, the loss to be shown with a power of 80%%, as a share of a metric's range
    (default 0.02)
partial fresh  let the cases that -k, -m, --lf or node ids select decide the status alone, without gates; otherwise a
    gate on some of a benchmark's cases is not decided (12)
inject FAULT  play faults of the model under test, drawn by --seed: status=529:5%%, latency=10s:1%%, cut=2%% or
    malformed_tool_call=3%%; may be repeated; the tag `fault` marks the affected cases
shard K/N  this machine's part of the cases, for example 3/8; `evalsuite runs merge` joins the parts
stop_when_decided project now=--until-decided  what --until-decided means without --max-cost
until_decided  run the cases in random order and stop as soon as every gate is decided either way; with --max-cost,
    continue open gates with the samples beyond --limit and then with more epochs (at most --epochs, default 5), until
    the limit is spent
max_error_share SHARE project  share of errors among a gated benchmark's cases that its gates tolerate (default 0.01)
allow_plain_workers project fresh  let --tx socket=HOST:PORT reach another host over plain TCP, which anybody on the way
    can read and change; prefer --tx ssh=HOST, or a tunnel
"""
"""Each option of a session: its name, placeholder, marks and help; `read_option_table` describes the marks."""

OPTIONS = option_values.read_option_table(TABLE, {item.name: str(item.type) for item in fields(Settings)})
"""The options in the order of the table, with the types of the fields of `Settings`."""

OWN_PACKAGES = ("auto", "own")  # For these values of `program_env`, no separate environment is built before collection.


def restore_settings(plain: Mapping[str, Any]) -> Settings:
    """Make settings from the data that `Settings.plain` returned; ignore unknown names, which another version wrote."""
    values = {item.name: plain[item.name] for item in fields(Settings) if item.name in plain}
    for option in OPTIONS:
        if option.repeat and option.name in values:
            values[option.name] = tuple(values[option.name])
    gates = tuple(values.get("command_gate", ()))
    return Settings(**values | {"command_gate": gates, "given": frozenset(values.get("given", ()))})


def merge_earlier_settings(settings: Settings, earlier: Settings) -> Settings:
    """Merge a run's settings with the settings of the run that it resumes or replays; given values take precedence."""
    is_decided_otherwise = bool(settings.command_gate or settings.only_gate or settings.partial)
    given = settings.given | ({"gate"} if is_decided_otherwise else set())
    options = [option for option in OPTIONS if option.kept and option.name not in given]
    kept = {option.name: getattr(earlier, option.name) for option in options}
    if not is_decided_otherwise:
        # Add the gates of the earlier command line here, because `kept` omits `gate` if the ini file sets it.
        gates = earlier.only_gate or dict.fromkeys([*kept.get("gate", settings.gate), *earlier.command_gate])
        kept |= {"gate": tuple(gates), "only_gate": earlier.only_gate, "command_gate": earlier.command_gate}
    return replace(settings, **kept)


MOST_EPOCHS = 5  # default of --epochs with --until-decided


def make_settings(values: Mapping[str, Any]) -> Settings:
    """Make settings from a mapping of names to values; None and empty sequences count as not given."""
    options = [option for option in OPTIONS if option_values.is_given(values.get(option.name))]
    given = {option.name: option_values.parse_value(option, values[option.name]) for option in options}
    for name in ("gateway", "resume", "replay", "shard", "answers"):
        # Refuse an empty value (an unset shell variable), because a run without the option would make more paid calls.
        if given.get(name) == "":
            raise SettingsError(f"--{name}: its value is empty; give one, or leave the option out")
    if "resume" in given and "replay" in given:
        raise SettingsError(
            "--resume and --replay exclude each other: the first asks for what is missing, the second never asks"
        )
    if "until_decided" in given and "max_cost" not in given:
        # Without a spend limit, stop after the planned cases, because undecided gates could prolong the run forever.
        given["stop_when_decided"] = given.pop("until_decided")
    given |= {"model": f"answers:{given['answers']}"} if "answers" in given else {}
    settings = Settings(**given | _derive_settings(given), given=frozenset(given))
    if settings.partial and settings.can_end_early:
        raise SettingsError("--partial excludes --until-decided: its cases decide no gate")
    refuse_misspelt_params("--model-param", settings.model_params)
    refuse_misspelt_params("--judge-param", settings.judge_params)
    if settings.shard:
        option_values.parse_shard(settings.shard)
        if settings.can_end_early:
            raise SettingsError(
                "--shard excludes --until-decided: the gates of a shard are decided when all shards have been joined"
            )
    if settings.gateway and settings.max_cost is not None:
        raise SettingsError(
            "--gateway and --max-cost exclude each other: the spend limit is the gateway's, which knows what all of "
            "its clients spend; give it there, and each client its share"
        )
    if not settings.resume:
        # For a resumed run, check later, because --batch or --gateway may come from the earlier run.
        check_batch_options(settings)
    _check_comparison_settings(settings)
    return settings


def _derive_settings(given: Mapping[str, Any]) -> dict[str, Any]:
    """Derive the number of epochs, the gates and the baselines from other settings."""
    derived: dict[str, Any] = {}
    if "until_decided" in given and "epochs" not in given:
        derived["epochs"] = MOST_EPOCHS
    if "partial" in given or "only_gate" in given:
        derived["gate"] = () if "partial" in given else given["only_gate"]
    if named := option_values.list_named_baselines(derived.get("gate", given.get("gate", ()))):
        derived["baseline"] = tuple(dict.fromkeys([*given.get("baseline", ()), *named]))
    return derived


def _check_comparison_settings(settings: Settings) -> None:
    if not 0 < settings.detect < 1:
        raise SettingsError(f"evalsuite_detect {settings.detect:g}: it lies between 0 and 1, for example 0.02")
    for name in ("min_paired", "max_error_share"):
        if (share := getattr(settings, name)) > 1:
            raise SettingsError(f"evalsuite_{name} {share:g}: a share is at most 1, for example 0.9")
    for text in settings.accept_change:
        option_values.parse_accepted_changes(text)


def check_batch_options(settings: Settings) -> None:
    """Check that --batch and the options that depend on it are consistent."""
    if settings.detach and not settings.batch:
        raise SettingsError("--detach goes with --batch: it ends the session once the batches are sent")
    if settings.batch and settings.gateway:
        raise SettingsError(
            "--batch and --gateway exclude each other: a gateway answers call by call; leave out one of them"
        )
