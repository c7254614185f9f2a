// Draw estimates as bars: a point, its interval, and the value that the estimate is compared with.

/** The range of a bar: `least` if all values lie in it, else a range that shows all values. */
function span(values, least = [0, 1]) {
  const numbers = values.filter((value) => Number.isFinite(value));
  if (numbers.every((value) => value >= least[0] && value <= least[1])) return least;
  const [low, high] = [Math.min(0, ...numbers), Math.max(...numbers)];
  const room = (high - low) * 0.08 || 1;
  return [low < 0 ? low - room : 0, high + room];
}

/** A share of the bar's width, in percent. */
function along([low, high], value) {
  return `${Math.min(100, Math.max(0, ((value - low) / (high - low)) * 100))}%`;
}

function stretch(range, from, to, className) {
  const [start, end] = [along(range, from), along(range, to)];
  return el("span", { class: className, style: { left: start, width: `calc(${end} - ${start})` } });
}

function at(range, value, className) {
  return el("span", { class: className, style: { left: along(range, value) } });
}

/** Draws a gate: the estimate, its interval, and the good side of the threshold. */
function gateBar(gate) {
  const { found, threshold } = gate;
  const range = span([found.low, found.high, found.value, threshold]);
  const wantsMore = gate.comparison.startsWith(">");
  const label = `${withInterval(found)}, wanted ${gate.comparison} ${threshold}`;
  return el("div", { class: `bar ${gate.verdict === "met" ? "good" : "bad"}`, role: "img", "aria-label": label },
    stretch(range, wantsMore ? threshold : range[0], wantsMore ? range[1] : threshold, "allowed"),
    found.low === null ? null : stretch(range, found.low, found.high, "reach"),
    at(range, found.value, "point"),
    at(range, threshold, "threshold"));
}

/** Draws a difference around zero, with the loss that matters. */
function differenceBar(difference, extent, { margin = null, lower = false, tone = "" } = {}) {
  const range = [-extent, extent];
  const bar = el("div", { class: `bar ${tone}`, role: "img", "aria-label": `difference ${withInterval(difference)}` });
  if (margin !== null) append(bar, [at(range, lower ? margin : -margin, "margin")]);
  if (difference.low !== null) append(bar, [stretch(range, difference.low, difference.high, "reach")]);
  append(bar, [at(range, 0, "zero"), at(range, difference.value, "point")]);
  return bar;
}

/** Draws a mean within its range, small enough for a table. */
function meanBar(mean) {
  const range = span([mean.low, mean.high, mean.value]);
  return el("div", { class: "bar small", role: "img", "aria-label": withInterval(mean) },
    mean.low === null ? null : stretch(range, mean.low, mean.high, "reach"), at(range, mean.value, "point"));
}

/** Draws the number of cases per outcome. */
function outcomeBar(counts) {
  const total = OUTCOMES.reduce((sum, outcome) => sum + (counts[outcome] ?? 0), 0);
  const words = OUTCOMES.filter((outcome) => counts[outcome]).map((outcome) => countedOutcome(counts[outcome], outcome));
  return el("div", { class: "outcomes", role: "img", "aria-label": words.join(", "), title: words.join(", ") },
    OUTCOMES.filter((outcome) => counts[outcome]).map((outcome) =>
      el("span", { class: outcome, style: { width: `${(counts[outcome] / total) * 100}%` } })));
}
