"""Write a report's tables and figures in LaTeX, with the packages booktabs and graphicx."""

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

from evalsuite.core.json_codec import digest
from evalsuite.output.reports.compare import GLANCE_TITLE, make_comparison_sections, make_paired_table
from evalsuite.output.reports.markdown import collapse_to_line, format_plain_cell
from evalsuite.output.reports.plots import draw_charts
from evalsuite.output.reports.section import Section, Table, drop_unmeasured_columns, is_best, list_charts
from evalsuite.results.runs import Run
from evalsuite.results.tally import Tally

SPECIAL = {
    "\\": r"\textbackslash{}",
    "~": r"\textasciitilde{}",
    "^": r"\textasciicircum{}",
    "<": r"\textless{}",
    ">": r"\textgreater{}",
    "|": r"\textbar{}",
    "↑": r"$\uparrow$",
    "↓": r"$\downarrow$",
    **{sign: f"\\{sign}" for sign in "&%$#_{}"},
}


def escape_latex(text: str) -> str:
    """Escape a text so that LaTeX does not find commands in it."""
    return "".join(SPECIAL.get(sign, sign) for sign in collapse_to_line(text))


def format_latex_table(table: Table, caption: str, stars: Mapping[tuple[str, str], str] | None = None) -> str:
    """Write a table with its caption and note; the best value in each row is bold."""
    table = drop_unmeasured_columns(table)
    bests = table.best or [None] * len(table.rows)
    rows = []
    for row, best in zip(table.rows, bests, strict=True):
        cells = []
        for cell, column in zip(row, table.columns, strict=True):
            text = escape_latex(format_plain_cell(cell, column))
            mark = (stars or {}).get((str(row[0]), column.title), "")
            cells.append((rf"\textbf{{{text}}}" if is_best(cell, column, best) else text) + mark)
        rows.append(" & ".join(cells))
    shape = "".join("l" if column.style == "text" else "r" for column in table.columns)
    lines = [
        r"\begin{table}",
        r"\centering",
        rf"\caption{{{escape_latex(caption)}}}",
        rf"\begin{{tabular}}{{{shape}}}",
        r"\toprule",
        " & ".join(escape_latex(column.title) for column in table.columns) + r" \\",
        r"\midrule",
        *(rf"{row} \\" for row in rows),
        r"\bottomrule",
        r"\end{tabular}",
        *([rf"\par\smallskip\footnotesize {escape_latex(table.note)}"] if table.note else []),
        r"\end{table}",
    ]
    return "\n".join(lines) + "\n"


LEVELS = ((0.001, "***"), (0.01, "**"), (0.05, "*"))
"""Upper limits of p with their stars, for a difference from the first run."""

LONGEST_PROMPT = 3000  # Maximum characters of an example prompt in the appendix.


def write_paper(runs: Sequence[Run], labels: Sequence[str], folder: Path) -> list[Path]:
    """Write tables.tex, appendix.tex, and figures.tex with one PDF per figure."""
    folder.mkdir(parents=True, exist_ok=True)
    sections = make_comparison_sections(runs, labels)
    appendix = [text for run, label in zip(runs, labels, strict=True) for text in _format_run_description(run, label)]
    for name in sorted({name for run in runs for name in run.benchmarks}):
        appendix += _format_prompt(name, [run for run in runs if name in run.benchmarks])
    texts = {
        "tables.tex": _format_latex_tables(sections, map_significance_stars(runs, labels), labels[0]),
        "figures.tex": _draw_and_format_figures(sections, folder),
        "appendix.tex": "\n\n".join(appendix) + "\n",
    }
    for name, text in texts.items():
        (folder / name).write_text(text, "utf-8")
    return [folder / name for name in texts]


def map_significance_stars(runs: Sequence[Run], labels: Sequence[str]) -> dict[tuple[str, str], str]:
    """Map benchmark and run to stars that show how significantly the run differs from the first run."""
    stars = {}
    for name in {name for run in runs for name in run.benchmarks}:
        table = make_paired_table(runs, labels, name)
        primary = next(run.benchmarks[name].primary for run in runs if name in run.benchmarks)
        for run, against, metric, *_, pvalue in table.rows if table else ():
            if against == labels[0] and metric == primary and isinstance(pvalue, float):
                mark = next((mark for level, mark in LEVELS if pvalue < level), "")
                stars[name, str(run)] = rf"$^{{{mark}}}$" if mark else ""
    return stars


def _format_latex_tables(sections: Sequence[Section], stars: dict[tuple[str, str], str], first_label: str) -> str:
    stars_note = (
        f" Stars: differs from {first_label}, paired by question, with Bonferroni's correction for all pairs: "
        "* p < 0.05, ** p < 0.01, *** p < 0.001."
    )
    tables = []
    for section in sections:
        legend, marks = (stars_note, stars) if section.title == GLANCE_TITLE else ("", {})
        for block in section.blocks:
            if isinstance(block, Table) and block.rows:
                caption = ": ".join(filter(None, (section.title, block.title)))
                tables.append(format_latex_table(block, f"{caption}.{legend}", marks))
    return "% needs \\usepackage{booktabs}\n" + "\n".join(tables)


def _draw_and_format_figures(sections: Sequence[Section], folder: Path) -> str:
    charts = list_charts(sections)
    drawn = set(draw_charts(charts, folder, "pdf"))
    figures = [
        "\\begin{figure}\n\\centering\n"
        rf"\includegraphics[width=\linewidth]{{\evalsuitefigures {chart.name}.pdf}}"
        f"\n\\caption{{{escape_latex(f'{chart.title}.')}}}\n\\end{{figure}}\n"
        for chart in charts
        if chart.name in drawn
    ]
    head = (
        "% needs \\usepackage{graphicx}; where the figures stand, if not beside the document:\n"
        "\\providecommand{\\evalsuitefigures}{}\n"
    )
    return head + "\n".join(figures)


def _format_run_description(run: Run, label: str) -> Iterator[str]:
    info, settings = run.info, run.info.get("settings", {})
    params = ", ".join(settings.get("model_param") or []) or "defaults"
    judge = settings.get("judge_model") or "none"
    yield rf"\paragraph{{{escape_latex(label)}}}"
    yield (
        f"Run {escape_latex(run.folder.name)}, begun {escape_latex(str(info.get('started')))}: "
        rf"\texttt{{{escape_latex(str(info.get('command')))}}}. Model {escape_latex(info.get('model') or 'none')}, "
        f"parameters: {escape_latex(params)}; judge: {escape_latex(judge)}."
    )
    versions = ", ".join(f"{name} {version}" for name, version in sorted(info.get("versions", {}).items()))
    yield f"Versions: {escape_latex(versions)}."
    for name, bench in run.benchmarks.items():
        data, prompts = _hash_fingerprints(bench.tally, "input", "target"), _hash_fingerprints(bench.tally, "prompt")
        scorers = ", ".join(sorted({row.fingerprints.get("scorers", "unknown") for row in bench.tally}))
        yield (
            f"{escape_latex(name)}: {len(bench.tally)} cases of {escape_latex(bench.source)}; SHA-256 (16 digits) "
            f"of data {data}, of prompts {prompts}, of scorers {escape_latex(scorers)}."
        )


def _hash_fingerprints(tally: Tally, *names: str) -> str:
    """Hash the named fingerprints of all cases; return `unknown` if a case lacks the fingerprint named first."""
    if any(names[0] not in row.fingerprints for row in tally):
        return "unknown"
    return digest(sorted([row.fingerprints.get(name, "") for name in names] for row in tally))


def _format_prompt(name: str, runs: Sequence[Run]) -> Iterator[str]:
    """Write the prompt of a benchmark's first case, from the first run that sent a prompt for it."""
    for run in runs:
        record = run.read(run.benchmarks[name].tally.rows[0].case)
        prompt = [] if record.transcript is None else list(record.transcript.messages)
        ends = next((place for place, message in enumerate(prompt) if message.role == "assistant"), len(prompt))
        if ends:
            words = "\n".join(f"[{message.role}] {message.content}" for message in prompt[:ends])
            yield rf"\paragraph{{Prompt of {escape_latex(name)}}} Case {escape_latex(record.sample)}:"
            lines = (escape_latex(line) or r"\mbox{}" for line in words[:LONGEST_PROMPT].splitlines())
            yield "\\begin{quote}\\small\\ttfamily\\raggedright\n" + "\\\\\n".join(lines) + "\n\\end{quote}"
            return
