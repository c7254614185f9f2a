"""`evalsuite score benchmark`: compare evalsuite's scores with the verdicts of a benchmark's original checker."""

import asyncio
import sys
from argparse import Namespace
from pathlib import Path

from evalsuite.benchmarks.checkers import MODES, READERS, TOLERANCE, Agreement, read_plain_verdicts
from evalsuite.commands import print_lines
from evalsuite.core.errors import SettingsError, write_count
from evalsuite.core.option_values import declare_arguments
from evalsuite.core.settings import make_settings
from evalsuite.core.types import Score
from evalsuite.engine.bound import BoundBenchmark, bind_benchmark
from evalsuite.engine.declaration import Declaration, find_benchmark
from evalsuite.engine.scoring import convert_scores, get_callable_name, hash_scorers, run_rule_scorer


@declare_arguments(
    """
    name=NAME         a benchmark of evalsuite or of an installed package
    --against DIR     outputs and the checker's verdicts on them
    --data DIR        the folder that holds the benchmark's data
    --arg NAME=TEXT*  an argument of @benchmark; may be repeated
    --shown N         number of differences to print (default: 10)

    DIR holds for bfcl the folders `result` and `score`; for tool_eyes the folders `tmp` and `jsonl` of the authors'
    evaluation; for treb files *--judge.jsonl; for wikitablequestions predictions NAME.tsv and the output of
    evaluator.py for them, NAME.txt; for others JSON lines {id, answer, scores: {name: value}}. No code of the checker
    is run. Later runs with this data print the figure beside the data's source.
    """,
    required=("against", "data"),
    data=str,
    shown=10,
)
def run_benchmark(options: Namespace) -> int:
    """Print how many verdicts agree, and the first differences; return 1 if any verdict differs, otherwise 0."""
    if wrong := [text for text in options.arg if "=" not in text]:
        options.parser.error(f"--arg {wrong[0]}: write NAME=TEXT")
    chosen = [f"{options.name}={mode}" for mode in MODES.get(options.name, ())]
    arguments = dict(text.split("=", 1) for text in options.arg)
    settings = make_settings({"data": options.data, "mode": chosen})
    declaration = Declaration(find_benchmark(options.name), args=arguments)
    bound = bind_benchmark(declaration, settings, "none", Path.cwd(), options.name)
    if bound.setup.data is None:
        raise SettingsError(f"--data {options.data}: it has no folder {options.name}")
    own = [*bound.sorted_scorers.rules, *bound.sorted_scorers.asynchronous]
    verdicts, unknown, differences = asyncio.run(_compare_with_checker(options, bound))
    if not verdicts:
        raise SettingsError(f"--against {options.against}: no verdict on a question of {options.name}")
    measured = Agreement(hash_scorers(own), verdicts, verdicts - len(differences))
    measured.write_agreement(bound.setup.data)
    left_out = f"; left out {write_count(unknown, 'output')}" if unknown else ""
    sys.stdout.write(f"{options.name}: {measured.describe_agreement()}{left_out}\n")
    print_lines(f"  {difference}" for difference in differences[: options.shown])
    if more := len(differences[options.shown :]):
        sys.stdout.write(f"  and {more:,} more\n")
    return int(bool(differences))


async def _compare_with_checker(options: Namespace, bound: BoundBenchmark) -> tuple[int, int, list[str]]:
    """Compare each score with the checker's verdict; return two counts and a line for each verdict that differs.

    The first count is of the verdicts that were compared. The second is of the outputs that were left out, because they
    lack a verdict or their question is not in the data.
    """
    samples = {sample.id: sample for sample in bound.dataset.samples}
    verdicts, unknown, differences = 0, 0, list[str]()
    for verdict in READERS.get(options.name, read_plain_verdicts)(options.against, samples):
        sample = samples.get(verdict.sample)
        if sample is None or not verdict.scores:
            unknown += 1
            continue
        scores: dict[str, float | Score] = {}
        for scorer in bound.sorted_scorers.rules:
            scores |= run_rule_scorer(scorer, sample, verdict.transcript)
        for asynchronous in bound.sorted_scorers.asynchronous:
            scores |= convert_scores(await asynchronous(sample, verdict.transcript), get_callable_name(asynchronous))
        for name in sorted(verdict.scores.keys() & scores.keys()):
            score, theirs = scores[name], verdict.scores[name]
            ours, note = (score.value, score.note) if isinstance(score, Score) else (float(score), "")
            verdicts += 1
            if abs(ours - theirs) > TOLERANCE:
                reason = f" ({note})" if note else ""
                shown = f"{ours:g} here{reason}, {theirs:g} there; {verdict.place}"
                differences.append(f"{sample.id}, {name}: {shown}")
    return verdicts, unknown, differences
