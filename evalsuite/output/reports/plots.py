"""Draw charts as SVG files with matplotlib (extra `plots`); equal data always give identical files."""

import importlib.util
import math
import textwrap
import warnings
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any, Literal

from evalsuite.output.reports.markdown import ABSENT
from evalsuite.output.reports.section import Chart
from evalsuite.results.tally import Estimate

# Okabe and Ito's palette, which most colour-blind readers can tell apart.
COLOURS = ("#0072B2", "#E69F00", "#009E73", "#CC79A7", "#56B4E9", "#D55E00", "#F0E442", "#000000")
MARKERS = "osD^vPX*"
# matplotlib's key for the creation date; the files omit this date, so that equal charts give equal files.
DATED = {".svg": "Date", ".pdf": "CreationDate"}
LEGEND_LINE, LEGEND_MARK, LEGEND_LETTER = 0.22, 0.6, 0.09
"""Sizes in the legend, in inches at the font's size: height of a line, width of a mark, width of a letter."""


def can_draw_charts() -> bool:
    """Tell whether matplotlib can be imported."""
    return importlib.util.find_spec("matplotlib") is not None


def draw_charts(charts: Iterable[Chart], folder: Path, kind: Literal["svg", "pdf"] = "svg") -> list[str]:
    """Draw each chart to the file `<name>.<kind>` in the folder; return the names of the charts that were drawn.

    Skip a chart that cannot be drawn: its numbers are also in the report's tables.
    """
    wanted = [chart for chart in charts if chart.labels and chart.has_values]
    drawn = []
    for chart in wanted if can_draw_charts() else ():
        # Ignore warnings such as missing glyphs even if `-W` turns them into errors, because an imperfect chart is
        # better than none. No error of a picture changes the verdict.
        with suppress(Exception), warnings.catch_warnings():
            warnings.simplefilter("ignore")
            draw_chart(chart, folder / f"{chart.name}.{kind}")
            drawn.append(chart.name)
    return drawn


def draw_chart(chart: Chart, file: Path) -> None:
    """Draw one chart; the file's suffix selects SVG, PDF or PNG."""
    import matplotlib as mpl
    from matplotlib.figure import Figure

    # With a fixed salt, equal charts give equal files. SVG text is kept as text, which is small and searchable.
    style: Any = {
        "svg.hashsalt": "evalsuite",
        "svg.fonttype": "none",
        "font.size": 10,
        # Do not read text as formulas, because a tag may contain a dollar sign.
        "text.parse_math": False,
        "axes.axisbelow": True,
    }
    with mpl.rc_context(style):
        figure = Figure(figsize=_compute_figure_size(chart), layout="constrained")
        DRAWERS[chart.kind](chart, figure)
        figure.suptitle(chart.title, fontsize=11)
        metadata: dict[str, Any] = {"Creator": "evalsuite"}
        if file.suffix in DATED:
            metadata[DATED[file.suffix]] = None
        figure.savefig(file, metadata=metadata, facecolor="white", dpi=160)


def _compute_figure_size(chart: Chart) -> tuple[float, float]:
    if chart.kind == "heatmap":
        names = max((len(series.name) for series in chart.series), default=0)
        cell = max(0.75, LEGEND_LETTER * min(12, max(map(len, chart.labels))))
        return 2.0 + LEGEND_LETTER * names + cell * len(chart.labels), 1.8 + 0.5 * len(chart.series)
    marks = len(chart.labels) * (len(chart.series) if chart.kind == "bars" else 1)
    wanted, height = (6.4, 4.8) if chart.kind == "radar" else (2.0 + 0.35 * marks, 4.0)
    width = min(14.0, max(6.4, wanted, _compute_legend_entry_width(chart)))
    return width, height + LEGEND_LINE * math.ceil(len(chart.series) / _count_legend_columns(chart, width))


def _convert_to_chart_unit(chart: Chart, value: float) -> float:
    return value * 100 if chart.unit == "percent" else value


def _get_error_bars(chart: Chart, values: Iterable[float | Estimate | None]) -> tuple[list[float], list[list[float]]]:
    """Return the values, and how far each interval extends below and above them; nan for missing numbers."""
    middle, reach = [], [[], []]  # type: list[float], list[list[float]]
    for value in values:
        estimate = Estimate(value) if isinstance(value, (int, float)) else value
        point = math.nan if estimate is None else _convert_to_chart_unit(chart, estimate.value)
        middle.append(point)
        if estimate is None or estimate.low is None or estimate.high is None:
            # A missing interval gets nan, because a bar of length 0 would look like a very narrow interval.
            below = above = math.nan
        else:
            below = max(0.0, point - _convert_to_chart_unit(chart, estimate.low))
            above = max(0.0, _convert_to_chart_unit(chart, estimate.high) - point)
        reach[0].append(below)
        reach[1].append(above)
    return middle, reach


def _set_tick_labels(chart: Chart, axes: Any) -> None:
    rotation, side = (35, "right") if sum(map(len, chart.labels)) > 60 else (0, "center")
    axes.set_xticks(range(len(chart.labels)), chart.labels, rotation=rotation, ha=side)


def _add_legend(chart: Chart, figure: Any) -> None:
    """Put the legend below the axes, so that long names do not make the axes narrower."""
    if len(chart.series) > 1:
        columns = _count_legend_columns(chart, figure.get_figwidth())
        figure.legend(frameon=False, loc="outside lower center", ncols=columns)


def _count_legend_columns(chart: Chart, width: float) -> int:
    return min(len(chart.series), max(1, int(width / _compute_legend_entry_width(chart))))


def _compute_legend_entry_width(chart: Chart) -> float:
    return LEGEND_MARK + LEGEND_LETTER * max(len(series.name) for series in chart.series)


def _draw_bars_or_lines(chart: Chart, figure: Any) -> None:
    axes = figure.add_subplot()
    axes.set_xlabel(chart.x_title)
    axes.set_ylabel(chart.y_title + (" (%)" if chart.unit == "percent" else ""))
    if chart.limits:
        axes.set_ylim(*(_convert_to_chart_unit(chart, limit) for limit in chart.limits))
    axes.grid(axis="y", color="#dddddd", linewidth=0.6)
    axes.spines[["top", "right"]].set_visible(False)
    if chart.kind == "bars" and len(chart.labels) < 3:
        axes.set_xlim(-1, len(chart.labels))
    # Limit the width of bars; otherwise a few bars would fill the whole chart. Shift the points of each line slightly
    # sideways, so that the intervals do not cover each other.
    width = min(0.8 / len(chart.series), 0.1 * max(3, len(chart.labels))) if chart.kind == "bars" else 0.04
    for index, series in enumerate(chart.series):
        middle, reach = _get_error_bars(chart, series.values)
        aside = width * (index - (len(chart.series) - 1) / 2)
        places = [place + aside for place in range(len(chart.labels))]
        style = {"label": series.name, "color": COLOURS[index % len(COLOURS)], "yerr": reach}
        if chart.kind == "bars":
            axes.bar(places, middle, width * 0.92, ecolor="#444444", capsize=2, **style)
        else:
            axes.errorbar(places, middle, marker=MARKERS[index % len(MARKERS)], capsize=3, **style)
    _set_tick_labels(chart, axes)
    _add_legend(chart, figure)


def _draw_radar(chart: Chart, figure: Any) -> None:
    axes = figure.add_subplot(projection="polar")
    turns = [2 * math.pi * place / len(chart.labels) for place in range(len(chart.labels))]
    for index, series in enumerate(chart.series):
        middle, _ = _get_error_bars(chart, series.values)
        # Leave a gap in the line for a missing value, and do not fill a polygon that has a gap.
        closed = [*middle, middle[0]]
        colour = COLOURS[index % len(COLOURS)]
        axes.plot([*turns, turns[0]], closed, color=colour, marker=".", label=series.name)
        if not any(math.isnan(value) for value in closed):
            axes.fill([*turns, turns[0]], closed, color=colour, alpha=0.08)
    axes.set_xticks(turns, [textwrap.fill(label, 14) for label in chart.labels])
    axes.set_theta_offset(math.pi / 2)
    axes.set_theta_direction(-1)
    for turn, label in zip(turns, axes.get_xticklabels(), strict=True):
        side = math.sin(turn)  # Write each name outside the circle, next to its spoke.
        label.set_horizontalalignment("left" if side > 0.1 else "right" if side < -0.1 else "center")
    if chart.limits:
        axes.set_ylim(*(_convert_to_chart_unit(chart, limit) for limit in chart.limits))
    axes.grid(color="#dddddd", linewidth=0.6)
    _add_legend(chart, figure)


def _draw_heatmap(chart: Chart, figure: Any) -> None:
    axes = figure.add_subplot()
    cells = [_get_error_bars(chart, series.values)[0] for series in chart.series]
    low, high = (_convert_to_chart_unit(chart, limit) for limit in chart.limits) if chart.limits else (None, None)
    image = axes.imshow(cells, cmap="RdBu_r" if (low or 0) < 0 else "Blues", vmin=low, vmax=high, aspect="auto")
    axes.set_yticks(range(len(chart.series)), [series.name for series in chart.series])
    _set_tick_labels(chart, axes)
    digits = 0 if chart.unit in ("count", "percent") else 2
    for row, values in enumerate(cells):
        for column, value in enumerate(values):
            if math.isnan(value):
                axes.text(column, row, ABSENT, ha="center", va="center", color="#888888")
                continue
            colour = "white" if _is_dark(image.cmap(image.norm(value))) else "black"
            axes.text(column, row, f"{value:.{digits}f}", ha="center", va="center", color=colour)
    figure.colorbar(image, ax=axes, shrink=0.8)


def _is_dark(colour: Sequence[float]) -> bool:
    """Tell whether white is easier to read than black on this background colour, by relative luminance (WCAG 2)."""
    channels = [part / 12.92 if part <= 0.03928 else ((part + 0.055) / 1.055) ** 2.4 for part in colour[:3]]
    luminance = sum(weight * part for weight, part in zip((0.2126, 0.7152, 0.0722), channels, strict=True))
    return luminance < 0.179


DRAWERS: Mapping[str, Callable[[Chart, Any], None]] = {
    "bars": _draw_bars_or_lines,
    "lines": _draw_bars_or_lines,
    "radar": _draw_radar,
    "heatmap": _draw_heatmap,
}
