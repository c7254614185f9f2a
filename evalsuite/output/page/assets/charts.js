// Draw the report's charts from their data, in the page's colours.

const [CHART_WIDTH, CHART_HEIGHT] = [720, 260];
const EDGE = { left: 56, right: 12, top: 12, bottom: 44 };
const SLANTED = 26;

function chartBlock(chart) {
  const measured = chart.series.some((series) => series.values.some((value) => value !== null));
  if (!measured) return null;
  const draw = { bars: barChart, lines: lineChart, radar: radarChart, heatmap: heatChart }[chart.kind];
  return el("figure", { class: "block chart" }, el("figcaption", {}, chart.title), draw(chart), legend(chart));
}

function legend(chart) {
  if (chart.series.length < 2 || chart.kind === "heatmap") return null;
  return el("ul", { class: "legend" }, chart.series.map((series, place) => el("li", { class: `tone-${place % 8}` }, series.name)));
}

function scaled(chart, value) {
  return chart.unit === "percent" ? value * 100 : value;
}

/** The value axis: its range and round steps. */
function valueAxis(chart) {
  const all = chart.series.flatMap((series) => series.values).filter(Boolean)
    .flatMap((estimate) => [estimate.value, estimate.low, estimate.high]).filter(Number.isFinite).map((value) => scaled(chart, value));
  const [low, high] = chart.limits ? chart.limits.map((limit) => scaled(chart, limit)) : [Math.min(0, ...all), Math.max(...all)];
  const raw = (high - low || 1) / 4;
  const unit = 10 ** Math.floor(Math.log10(raw));
  const step = [1, 2, 2.5, 5, 10].map((factor) => factor * unit).find((factor) => factor >= raw * 0.999);
  const top = chart.limits ? high : Math.ceil(high / step - 1e-9) * step || step;
  const bottom = Math.floor(low / step + 1e-9) * step;
  const ticks = [];
  for (let place = 0; bottom + place * step <= top + step / 1e6; place++) ticks.push(bottom + place * step);
  return { low: bottom, high: top, ticks };
}

function frame(chart, inside) {
  const axis = valueAxis(chart);
  const y = (value) => EDGE.top + (CHART_HEIGHT - EDGE.top - EDGE.bottom) * (1 - (scaled(chart, value) - axis.low) / (axis.high - axis.low || 1));
  const unscaled = (tick) => (chart.unit === "percent" ? tick / 100 : tick);
  const step = (CHART_WIDTH - EDGE.left - EDGE.right) / chart.labels.length;
  const crowded = chart.labels.some((label) => label.length * 6.2 > step);
  // Slanted labels need this distance; if labels are crowded, only the last label and every n-th before it are shown.
  const every = crowded ? Math.ceil(SLANTED / step) : 1;
  return svg("svg", { viewBox: `0 0 ${CHART_WIDTH} ${CHART_HEIGHT + (crowded ? 36 : 0)}`, role: "img", "aria-label": chart.title },
    axis.ticks.map((tick) => [
      svg("line", { class: "gridline", x1: EDGE.left, x2: CHART_WIDTH - EDGE.right, y1: y(unscaled(tick)), y2: y(unscaled(tick)) }),
      svg("text", { class: "tick", x: EDGE.left - 8, y: y(unscaled(tick)) + 3.5, "text-anchor": "end" }, tidy(tick)),
    ]),
    svg("text", { class: "axis", transform: `translate(12 ${CHART_HEIGHT / 2 - 16}) rotate(-90)`, "text-anchor": "middle" },
      chart.y_title + (chart.unit === "percent" ? " (%)" : "")),
    chart.labels.map((label, place) => ((chart.labels.length - 1 - place) % every ? null : axisLabel(label, EDGE.left + step * (place + 0.5), crowded))),
    chart.x_title ? svg("text", { class: "axis", x: CHART_WIDTH / 2, y: CHART_HEIGHT + (crowded ? 32 : -4), "text-anchor": "middle" }, chart.x_title) : null,
    inside({ y, step, x: (place) => EDGE.left + step * (place + 0.5) }));
}

function tidy(tick) {
  return String(Number(tick.toPrecision(6))).replace("-", MINUS);
}

function axisLabel(label, x, crowded) {
  const y = CHART_HEIGHT - EDGE.bottom + 18;
  const text = label.length > 22 ? `${label.slice(0, 21)}\u2026` : label;
  const slant = crowded ? { transform: `translate(${x} ${y}) rotate(-30)`, "text-anchor": "end" } : { x, y, "text-anchor": "middle" };
  return svg("text", { class: "tick", ...slant }, svg("title", {}, label), text);
}

function whisker(estimate, x, y) {
  if (!estimate || !Number.isFinite(estimate.low) || !Number.isFinite(estimate.high)) return null;
  return svg("line", { class: "whisker", x1: x, x2: x, y1: y(estimate.low), y2: y(estimate.high) });
}

function hint(chart, series, place, estimate) {
  const digits = chart.unit === "percent" ? 1 : 3;
  const shown = { ...estimate };
  for (const key of ["value", "low", "high"]) if (Number.isFinite(shown[key])) shown[key] = scaled(chart, shown[key]);
  return svg("title", {}, `${series.name}, ${chart.labels[place]}: ${withInterval(shown, digits)}`);
}

function barChart(chart) {
  return frame(chart, ({ x, y, step }) => {
    const width = Math.min(44, (step * 0.78) / chart.series.length);
    return chart.series.map((series, number) => series.values.map((estimate, place) => {
      if (!estimate) return null;
      const middle = x(place) + (number - (chart.series.length - 1) / 2) * width;
      const [top, foot] = [y(Math.max(0, estimate.value)), y(Math.min(0, estimate.value))];
      return svg("g", { class: `tone-${number % 8}` }, hint(chart, series, place, estimate),
        svg("rect", { class: "column", x: middle - width * 0.43, width: width * 0.86, y: top, height: Math.max(0.5, foot - top), rx: 1.5 }),
        whisker(estimate, middle, y));
    }));
  });
}

function lineChart(chart) {
  return frame(chart, ({ x, y }) => chart.series.map((series, number) => {
    const aside = (number - (chart.series.length - 1) / 2) * 4;
    let path = "";
    series.values.forEach((estimate, place) => {
      // A missing value remains a gap.
      const follows = chart.joined ? path : place && series.values[place - 1];
      if (estimate) path += `${follows ? "L" : "M"}${x(place) + aside} ${y(estimate.value)}`;
    });
    return svg("g", { class: `tone-${number % 8}` }, svg("path", { class: "line", d: path }),
      series.values.map((estimate, place) => estimate && svg("g", {}, hint(chart, series, place, estimate),
        whisker(estimate, x(place) + aside, y), svg("circle", { class: "dot", cx: x(place) + aside, cy: y(estimate.value), r: 3.5 }))));
  }));
}

function radarChart(chart) {
  const [size, radius] = [420, 130];
  const axis = valueAxis(chart);
  const point = (place, value) => {
    const turn = (2 * Math.PI * place) / chart.labels.length - Math.PI / 2;
    const reach = (radius * (scaled(chart, value) - axis.low)) / (axis.high - axis.low || 1);
    return [size * 0.75 + Math.cos(turn) * reach, size / 2 + Math.sin(turn) * reach];
  };
  const full = axis.high / (chart.unit === "percent" ? 100 : 1);
  return svg("svg", { class: "radar", viewBox: `0 0 ${size * 1.5} ${size}`, role: "img", "aria-label": chart.title },
    axis.ticks.filter((tick) => tick > axis.low).map((tick) => svg("circle", { class: "gridline", cx: size * 0.75, cy: size / 2, r: (radius * (tick - axis.low)) / (axis.high - axis.low) })),
    axis.ticks.filter((tick) => tick > axis.low).map((tick) => svg("text", { class: "tick faint", x: size * 0.75 + 4, y: size / 2 - (radius * (tick - axis.low)) / (axis.high - axis.low) - 2 }, tidy(tick))),
    chart.labels.map((label, place) => spoke(label, place, chart.labels.length, size, radius, point(place, full))),
    chart.series.map((series, number) => radarLine(chart, series, number, point)));
}

function spoke(label, place, count, size, radius, [x, y]) {
  const turn = (2 * Math.PI * place) / count - Math.PI / 2;
  const [lx, ly] = [size * 0.75 + Math.cos(turn) * (radius + 14), size / 2 + Math.sin(turn) * (radius + 14)];
  const anchor = Math.cos(turn) > 0.15 ? "start" : Math.cos(turn) < -0.15 ? "end" : "middle";
  return [svg("line", { class: "gridline", x1: size * 0.75, y1: size / 2, x2: x, y2: y }),
    svg("text", { class: "tick", x: lx, y: ly + 3.5, "text-anchor": anchor }, label)];
}

/** A polygon with gaps where nothing was measured. */
function radarLine(chart, series, number, point) {
  const places = series.values.map((estimate, place) => (estimate ? point(place, estimate.value) : null));
  const whole = places.every(Boolean);
  let path = "";
  const round = whole ? places : [...places, places[0]];
  round.forEach((place, index) => {
    if (place) path += `${index && round[index - 1] ? "L" : "M"}${place[0]} ${place[1]}`;
  });
  return svg("g", { class: `tone-${number % 8}` },
    svg("path", { class: whole ? "line area" : "line", d: whole ? `${path}Z` : path }),
    series.values.map((estimate, place) => estimate && svg("g", {}, hint(chart, series, place, estimate),
      svg("circle", { class: "dot", cx: places[place][0], cy: places[place][1], r: 3 }))));
}

function heatChart(chart) {
  const axis = valueAxis(chart);
  const shade = (estimate) => Math.round(((scaled(chart, estimate.value) - axis.low) / (axis.high - axis.low || 1)) * 100);
  const digits = chart.unit === "number" ? 2 : 0;
  return scrolled(el("table", { class: "heat" },
    el("thead", {}, el("tr", {}, el("td", {}), chart.labels.map((label) => el("th", { scope: "col" }, label)))),
    el("tbody", {}, chart.series.map((series) => el("tr", {}, el("th", { scope: "row" }, series.name),
      series.values.map((estimate) => estimate
        ? el("td", { style: { "--shade": `${Math.min(100, Math.max(0, shade(estimate)))}%` }, class: shade(estimate) > 60 ? "deep" : null }, fixed(scaled(chart, estimate.value), digits))
        : el("td", { class: "none" }, ABSENT)))))));
}
