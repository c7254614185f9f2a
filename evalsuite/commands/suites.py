"""The commands `evalsuite plan` and `evalsuite doctor`, which run pytest on a suite without paid requests."""

import argparse
from collections.abc import Container

from evalsuite.builders.model_session import add_options
from evalsuite.commands import require_suite, run_pytest
from evalsuite.core.option_values import declare_arguments
from evalsuite.core.settings import OPTIONS


def _add_pytest_options(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("rest", metavar="-- OPTION", nargs="*", help="further options of pytest")


@declare_arguments(
    """
    suite=SUITE?    folder or file of cases (default: pytest's own)
    --baseline RUN  earlier run whose usage and variance are expected again
    --detect LOSS   loss to be shown with a power of 80%%, as a share of a metric's range (default 0.02)
    --model MODEL*  model to be asked, for its price; may be repeated
    --epochs K      how often each sample is asked
    --limit N       maximum number of samples per benchmark
    --reports DIR   folder of the runs (default: reports)

    The command runs `pytest --plan SUITE`; any other option of pytest may follow after --.
    """,
    extend_parser=_add_pytest_options,
)
def run_plan(options: argparse.Namespace) -> int:
    """Let pytest collect the suite and print the plan."""
    suite = [options.suite] if options.suite else []
    require_suite(*suite)
    models = [f"--model={model}" for model in options.model]
    given = _write_given_options(options, ("baseline", "epochs", "limit", "reports", "detect"))
    return run_pytest("--plan", "-qq", "--no-header", *models, *given, *suite, *options.rest)


def _write_given_options(options: argparse.Namespace, names: Container[str]) -> list[str]:
    values = ((option, getattr(options, option.name)) for option in OPTIONS if option.name in names)
    return [option.write_argument(value) for option, value in values if value is not None]


ASKED = (
    *(f"{role}_{part}" for role in ("model", "judge", "user") for part in ("base_url", "key_env")),
    *("model", "judge_model", "user_model", "reports", "data", "sandbox", "program_env"),
)
"""The settings that `evalsuite doctor` checks, whether they come from options or from ini files."""


def _add_doctor_options(parser: argparse.ArgumentParser) -> None:
    parser.description = (
        "Says in a table what works here, for a run with the same options: the model and its key (the server's list "
        "of models is read, which costs nothing; no model is asked), the judge, the model that plays users, the "
        "sandbox for model-written programs, the extras that are installed, the folder of the runs and its disk. "
        "Options that are not given come from the suite's ini file, as in a run. The exit status is 0 if a run has all "
        "that it needs, otherwise 1."
    )
    add_options(parser, ASKED, defaults=True)


@declare_arguments(
    """
    suite=PATH*         the suite, as for pytest: cases/
    --without-programs  accept a missing sandbox, because no case runs programs that a model writes
    """,
    extend_parser=_add_doctor_options,
)
def run_doctor(options: argparse.Namespace) -> int:
    """Let pytest print the table, because pytest reads the ini files and conftests just as in a run."""
    require_suite(*options.suite)
    quietly = ["-p", "evalsuite.plugin", "-p", "evalsuite.plugin.doctor", "-p", "no:cacheprovider"]
    more = ["--doctor-without-programs"] if options.without_programs else []
    return run_pytest(*quietly, *more, *_write_given_options(options, ASKED), *options.suite)
