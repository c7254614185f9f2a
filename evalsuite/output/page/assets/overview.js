// Show the first screen: whether the model may be released, and the reasons.

const GATE_MARKS = { met: "\u2713", missed: "\u2717" };
const CHANGE_WORDS = { "no worse": ["\u2713", "good"], worse: ["\u2717", "bad"], undecided: ["?", "open"] };

async function showOverview(main) {
  const parts = OVERVIEW.kind === "comparison" ? await comparisonParts() : runParts();
  replaceChildren(main, el("div", { class: "overview" }, parts));
}

function runParts() {
  const { verdict } = OVERVIEW;
  return [
    hero(verdict),
    verdict.gates.length ? part("Gates", verdict.gates.map(gateLine), "gates") : null,
    verdict.baselines.map(baselinePart),
    OVERVIEW.benchmarks.length ? part("Benchmarks", benchmarkTable(), "benchmarks") : null,
    part("This run", [facts(subjectFacts()), madeWith(subjectFacts())], "facts"),
  ];
}

function subjectFacts() {
  return OVERVIEW.runs[OVERVIEW.subject];
}

function part(title, content, id) {
  return el("section", { class: "part", "aria-labelledby": `part-${id}` }, el("h2", { id: `part-${id}` }, title), content);
}

function hero(verdict) {
  const tone = verdict.status === 0 ? "good" : verdict.status === 12 ? "open" : "bad";
  const mark = { good: "\u2713", open: "\u2026", bad: "\u2717" }[tone];
  const run = subjectFacts();
  if (OVERVIEW.live !== undefined) return liveHero(run, verdict);
  return el("section", { class: `hero ${tone}` },
    el("p", { class: "stamp", "aria-hidden": "true" }, mark),
    el("div", {},
      el("p", { class: "model" }, run.model ?? "no model"),
      el("h1", {}, capital(verdict.headline)),
      el("p", { class: "counts" }, countsLine(verdict.counts), outcomeBar(verdict.counts)),
      reasonList(verdict.reasons, "reasons"), reasonList(verdict.remarks, "remarks")));
}

/** Shows a run in progress, whose verdict is still open. */
function liveHero(run, verdict) {
  return el("section", { class: "hero open" }, el("p", { class: "stamp", "aria-hidden": "true" }, "\u2026"),
    el("div", {}, el("p", { class: "model" }, run.model ?? "no model"), el("h1", {}, "Still running"),
      el("p", { class: "counts" }, countsLine(verdict.counts), " so far", outcomeBar(verdict.counts)),
      el("p", { class: "remarks" }, "Gates and means are those of the cases so far. This page follows the run.")));
}

function capital(text) {
  return text.charAt(0).toUpperCase() + text.slice(1);
}

function countsLine(counts) {
  const total = OUTCOMES.reduce((sum, outcome) => sum + (counts[outcome] ?? 0), 0);
  const links = OUTCOMES.filter((outcome) => counts[outcome]).map((outcome) => [
    el("a", { href: address("cases", { outcome: [outcome] }) }, countedOutcome(counts[outcome], outcome)),
  ]);
  return [el("a", { href: address("cases") }, counted(total, "case")), links];
}

function reasonList(lines, className) {
  const shown = 8;
  if (!lines.length) return null;
  const items = lines.slice(0, shown).map((line) => el("li", {}, line));
  const more = lines.length > shown
    ? el("details", {}, el("summary", {}, `${lines.length - shown} more`), el("ul", {}, lines.slice(shown).map((line) => el("li", {}, line))))
    : null;
  return el("div", { class: className }, el("ul", {}, items), more);
}

function gateLine(gate, number) {
  const tone = gate.verdict === "met" ? "good" : gate.verdict === "missed" ? "bad" : "open";
  return el("div", { class: `gate ${tone}` },
    el("span", { class: "mark", title: gate.verdict }, GATE_MARKS[gate.verdict] ?? "!"),
    el("div", { class: "what" },
      el("a", { href: gateAddress(gate, number) }, gate.text),
      el("span", { class: "said" }, [gate.verdict, gate.reason, wide(gate) ? gate.subject : ""].filter(Boolean).join(": "))),
    gate.found ? gateBar(gate) : el("span", { class: "bar none" }),
    el("span", { class: "figure" }, gate.found ? withInterval(gate.found, 4) : ABSENT,
      gate.found ? el("small", {}, counted(gate.found.n, "case")) : null));
}

function wide(gate) {
  return gate.metric === "*" || gate.benchmark === "*";
}

function gateAddress(gate, number) {
  const metric = gate.metric === "*" ? gate.subject.split(".").pop() : gate.metric;
  return address("cases", { gate: String(number), metric, benchmark: gate.benchmark === "*" ? "" : gate.benchmark });
}

function baselinePart(baseline, number) {
  // Metrics have different scales. Measured in losses that matter, all bars have the same scale.
  const losses = baseline.metrics.flatMap((metric) => [metric.low, metric.high, metric.difference].filter(Number.isFinite).map((value) => Math.abs(value) / (metric.margin || 1)));
  const extent = Math.max(2, ...losses) * 1.06;
  const left = Object.entries(baseline.left_out).filter(([, count]) => count).map(([side, count]) => `${count} cases are ${side}.`);
  return part(`Against ${baseline.name}`, [
    baseline.metrics.map((metric) => baselineLine(metric, extent)),
    el("p", { class: "note" },
      `Paired by question, epochs averaged; this run minus the baseline, with 95% intervals. The dotted line is the loss that matters. `, left.join(" "), " ",
      el("a", { href: address("cases", { changed: "lost" }) }, "Cases that lost"), " \u00b7 ",
      el("a", { href: address("cases", { changed: "any" }) }, "all that changed")),
  ], number ? `baseline-${number + 1}` : "baseline");
}

function baselineLine(metric, extent) {
  const [mark, tone] = CHANGE_WORDS[metric.verdict];
  const difference = { value: metric.difference, low: metric.low, high: metric.high, n: metric.n };
  return el("div", { class: `gate ${tone}` },
    el("span", { class: "mark", title: metric.verdict }, mark),
    el("div", { class: "what" },
      el("a", { href: address("cases", { benchmark: metric.benchmark, metric: metric.metric, changed: "any" }) }, metric.subject),
      el("span", { class: "said" }, `${metric.verdict}; ${fixed(metric.candidate)} after ${fixed(metric.baseline)}`)),
    differenceBar(difference, extent * metric.margin, { margin: metric.margin, lower: metric.lower_is_better }),
    el("span", { class: "figure" }, `${signed(difference.value, 4)} [${fixed(difference.low, 4)}, ${fixed(difference.high, 4)}]`,
      el("small", {}, `p ${probability(metric.pvalue).replace(/^(?!<)/, "= ")} \u00b7 ${counted(metric.n, "case")}`)));
}

function benchmarkTable() {
  const head = ["benchmark", "cases", "metric", "scored", "mean with 95% interval", "", "samples"];
  return scrolled(el("table", { class: "figures" },
    el("thead", {}, el("tr", {}, head.map((title, place) => el("th", { scope: "col", class: place === 1 || place === 3 ? "number" : null }, title)))),
    el("tbody", {}, OVERVIEW.benchmarks.map((benchmark) => el("tr", {},
      el("th", { scope: "row" }, el("a", { href: address("cases", { benchmark: benchmark.name }) }, benchmark.name)),
      el("td", { class: "number" }, whole(benchmark.cases)),
      el("td", {}, benchmark.metric ?? ABSENT),
      el("td", { class: "number" }, benchmark.found ? whole(benchmark.found.n) : ABSENT),
      el("td", { class: "figure" }, withInterval(benchmark.found)),
      el("td", { class: "wide" }, benchmark.found ? meanBar(benchmark.found) : null),
      el("td", { class: "soft" }, benchmark.source))))));
}

/** Makes a table that scrolls if it is wider than the page. */
function scrolled(table) {
  return el("div", { class: "scrolled", tabindex: "0", role: "region", "aria-label": "table" }, table);
}

function describeCost(usage) {
  const known = usage?.cost ? money(usage.cost) : "nothing was charged";
  return usage?.unpriced ? `${known}; no price of ${whole(usage.unpriced)} calls is known` : known;
}

function facts(run) {
  const usage = run.usage;
  const pairs = [
    ["Model", [run.model ?? "none", run.base_url ? ` at ${run.base_url}` : "", run.params.length ? ` with ${run.params.join(", ")}` : ""].join("")],
    ["Judge", run.judge ?? "none"],
    ["Started", moment(run.started)],
    ["Wall time", duration(run.seconds)],
    ["Cost", describeCost(usage)],
    ["Tokens", usage ? `${whole(usage.prompt_tokens)} read, ${whole(usage.completion_tokens)} written` : "unknown"],
    ["Calls", usage ? whole(usage.calls) : "unknown"],
    ["Run", run.name],
  ];
  return el("dl", { class: "facts" }, pairs.map(([name, value]) => el("div", {}, el("dt", {}, name), el("dd", {}, value))));
}

function madeWith(run) {
  const versions = Object.entries(run.versions).map(([name, version]) => `${name} ${version}`).join(" \u00b7 ");
  const command = run.command ?? "";
  return el("div", { class: "made" }, versions ? el("p", { class: "note" }, `Made with ${versions}`) : null,
    command ? el("div", { class: "command" }, el("code", {}, command), copyButton("Copy", command)) : null,
    el("div", { class: "command" }, el("code", {}, `pytest ... --replay ${run.name}`), el("small", {}, "the same answers again, without a model")));
}
