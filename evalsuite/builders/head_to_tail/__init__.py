"""Builds Head-to-Tail from knowledge sources: `evalsuite build head-to-tail SOURCE --from DIR --to FILE`.

`workspace` decompresses a dump into a pipe, and reads the pipe as a table. The module of each source (`imdb`,
`goodreads`, `mag`, `dblp`, `dbpedia`) makes questions. `drawing` divides entities into buckets by popularity, and draws
an equal number of random questions from each bucket.
"""

import json
import sys
from argparse import Namespace
from collections.abc import Iterable, Mapping, Sequence
from contextlib import closing
from functools import partial
from pathlib import Path

from evalsuite.benchmarks.head_to_tail.dataset import BUCKETS, HEADER, PREDICATES_SUFFIX, STATS_SUFFIX
from evalsuite.builders.building import BuildProgress, open_build_folder, sum_file_sizes, write_atomically
from evalsuite.builders.head_to_tail import dblp, dbpedia, goodreads, imdb, mag
from evalsuite.builders.head_to_tail.drawing import PopularityPartition, QuestionSource, Selection, choose_questions
from evalsuite.builders.head_to_tail.workspace import Workspace, find_dump_file
from evalsuite.builders.model_session import TAKEN, add_options, make_model_settings
from evalsuite.core.errors import DatasetError, SettingsError, write_count
from evalsuite.core.option_values import declare_arguments, make_int_parser

SOURCES: dict[str, type[QuestionSource]] = {
    "dblp": dblp.DblpSource,
    "dbpedia": dbpedia.DbpediaSource,
    "goodreads": goodreads.GoodreadsSource,
    "imdb": imdb.ImdbSource,
    "mag": mag.MagSource,
}


@declare_arguments(
    """
    source=SOURCE         the knowledge source
    folder=--from DIR     the folder of the downloaded files
    --to FILE             the JSON file to write
    --per-template N      maximum number of questions of each template in each of head, torso and tail; by default as
        many as are needed for 1,000 questions in each (3,000 for dbpedia)
    --mix MIX             own (the default): questions that people may ask; paper: the paper's templates, including
        ISBN, ISSN and DOI, and as many questions of each template as the paper's scripts make
    --seed SEED           seed for the choice of questions; 0 by default
    --templates FILE      question templates by predicate, for dbpedia
    --draft N             for dbpedia: have --model draft templates for the N commonest predicates without one, and
        write all templates to --to in place of questions
    """,
    required=("folder", "to"),
    source=sorted(SOURCES),
    per_template=make_int_parser(1),
    mix=["own", "paper"],
    seed=0,
    draft=make_int_parser(1),
    extend_parser=partial(add_options, names=TAKEN),
)
def run_build(args: Namespace) -> int:
    """Build the questions and report their number."""
    source_class = SOURCES[args.source]
    if args.draft and (args.source != "dbpedia" or not args.model):
        raise SettingsError("--draft goes with dbpedia and needs --model, the model that drafts the templates")
    if args.templates and args.source != "dbpedia":
        raise SettingsError("--templates goes with dbpedia only; this source has its own questions")
    files = [find_dump_file(args.folder, name) for name in source_class.files]
    with open_build_folder(args.to) as folder, BuildProgress(sum_file_sizes(files), "B") as progress:
        with closing(Workspace(folder, progress, args.seed)) as workspace:
            source = source_class(workspace, args.folder, *([args.templates] if args.templates else []))
            if isinstance(source, dbpedia.DbpediaSource) and args.draft:
                return _write_drafted_templates(source, args, folder)
            of_paper = args.mix == "paper"
            selection = choose_questions(
                source,
                source.paper_templates if of_paper else source.templates,
                per_template=args.per_template or (source.paper_cap if of_paper else None),
                target=source.target,
            )
        count = sum(len(asked) for buckets in selection.questions.values() for asked in buckets.values())
        if not count:
            problem = "no template with a question for each of head, torso and tail"
            raise DatasetError(args.folder, "", problem, "a larger dump")
        stats_path = args.to.with_suffix(STATS_SUFFIX)
        write_atomically(_format_stats(args, selection, source), stats_path, folder)
        if source.template_popularity:
            # Write each used predicate with its popularity and its bucket.
            lines = ["\t".join(HEADER)]
            for template, buckets in selection.questions.items():
                if any(buckets.values()):
                    own = source.template_popularity[template.id]
                    lines.append(f"{template.id}\t{own}\t{source.partitions['predicate'].find_bucket(own)}")
            write_atomically("\n".join(lines) + "\n", args.to.with_suffix(PREDICATES_SUFFIX), folder)
        write_atomically(_format_questions(selection, source.partitions), args.to, folder)
    sys.stdout.write(f"{count:,} questions in {args.to}, counted in {stats_path}\n")
    return 0


def _write_drafted_templates(source: dbpedia.DbpediaSource, args: Namespace, folder: Path) -> int:
    """Write a file of templates: those in use, and a model's drafts; return 1 if a draft failed."""
    examples = source.find_predicate_examples(args.draft)
    answers = args.to.with_suffix(".answers.sqlite")
    drafts, failures = dbpedia.draft_templates(examples, make_model_settings(vars(args)), answers)
    templates = json.loads((args.templates or dbpedia.TEMPLATES).read_text("utf-8")) | drafts
    write_atomically(json.dumps(templates, indent=1, ensure_ascii=False) + "\n", args.to, folder)
    for predicate, reason in failures.items():
        sys.stderr.write(f"{predicate}: {reason}\n")
    sys.stdout.write(f"{len(drafts):,} of {write_count(len(examples), 'template')} drafted, in {args.to}; read them\n")
    return int(bool(failures))


def _format_questions(selection: Selection, partitions: Mapping[str, PopularityPartition]) -> str:
    """Write the questions as `{"head": [[entity, template id, question, answer], ...], "torso": ..., "tail": ...}`.

    Within a bucket, questions are sorted by popularity, most popular first. An entity's rank is the share of the total
    popularity that belongs to more popular entities of its type. If a question has several right answers, its answer is
    a list.
    """
    parts = []
    for bucket in BUCKETS:
        ranked = [
            (
                partitions[template.entities].compute_share_above(each.popularity),
                each.entity,
                template.id,
                each.turn,
                each,
            )
            for template, buckets in selection.questions.items()
            for each in buckets[bucket]
        ]
        lines = []
        for _, entity, template_id, _, each in sorted(ranked, key=lambda row: row[:4]):
            answer = each.answers[0] if len(each.answers) == 1 else each.answers
            lines.append(f"  {json.dumps([entity, template_id, each.question, answer], ensure_ascii=False)}")
        text = ",\n".join(lines)
        parts.append(f' "{bucket}": [\n{text}\n ]' if lines else f' "{bucket}": []')
    return "{\n" + ",\n".join(parts) + "\n}\n"


def _format_stats(args: Namespace, selection: Selection, source: QuestionSource) -> str:
    """Write the statistics as Markdown: shares of head, torso and tail, questions by template, dropped templates."""
    reasons = dict(source.dropped)
    for template, buckets in selection.empty.items():
        reasons[template.id] = f"no question about an entity in {' or '.join(buckets)} that the rules allow"
    used = {template: buckets for template, buckets in selection.questions.items() if any(buckets.values())}
    counts = {template: [len(buckets[bucket]) for bucket in BUCKETS] for template, buckets in used.items()}
    totals = [sum(count[place] for count in counts.values()) for place in range(len(BUCKETS))]
    summary = [f"{number:,}" for number in (len(used), *totals, sum(totals))]
    rows = [[f"`{template.id}`", *(f"{number:,}" for number in count)] for template, count in counts.items()]
    heads = ("Entities", "Bucket", "Number", "Share of entities", "Share of popularity", "Least popularity")
    sizes = []
    for name, partition in source.partitions.items():
        by_bucket = partition.compute_bucket_totals()
        wholes = [sum(column) for column in zip(*by_bucket.values(), strict=True)]
        for bucket, numbers in by_bucket.items():
            shares = [f"{part / whole:.2%}" if whole else "-" for part, whole in zip(numbers, wholes, strict=True)]
            least = f"{partition.find_lowest_popularity(bucket):,}" if numbers[0] else "-"
            sizes.append([name, bucket, f"{numbers[0]:,}", *shares, least])
    parts = [
        f"# Head-to-Tail from {args.source}",
        f"Seed {args.seed}; at most {selection.cap:,} questions of a template in a bucket.",
        "## Entities by popularity",
        "The paper's Table 1. Each bucket has about a third of all popularity; equal popularity stays together.",
        _format_markdown_table(heads, sizes),
        "## Questions",
        "The paper's Table 2.",
        _format_markdown_table(("Templates", "Head", "Torso", "Tail", "Questions"), [summary]),
        "## Questions by template",
        _format_markdown_table(("Template", "Head", "Torso", "Tail"), rows),
        "## Templates that ask nothing",
        _format_markdown_table(("Template", "Reason"), [[f"`{name}`", reason] for name, reason in reasons.items()])
        if reasons
        else "None.",
    ]
    return "\n\n".join(parts) + "\n"


def _format_markdown_table(heads: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    return "\n".join(f"| {' | '.join(cells)} |" for cells in (heads, ["---"] * len(heads), *rows))
