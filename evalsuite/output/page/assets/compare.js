// Compare several runs: their metrics, then each pair on the questions that both runs scored; or show their history.

async function comparisonParts() {
  if (OVERVIEW.history) return [historyHero(OVERVIEW.history), OVERVIEW.sections.map(section)];
  const runs = await Promise.all(OVERVIEW.runs.map((_, number) => casesOf(number)));
  return [
    comparisonHero(runs),
    part("At a glance", glanceTable(), "glance"),
    OVERVIEW.benchmarks.map((benchmark) => pairsPart(benchmark)),
    part("The runs", OVERVIEW.runs.map((run) => el("div", { class: "run" }, el("h3", {}, run.label), facts(run), madeWith(run))), "runs"),
  ];
}

/** States whether the newest release has drifted from a protected reference, and in which metrics. */
function historyHero({ drifts, latest }) {
  const drifted = latest.length > 0;
  return el("section", { class: `hero ${drifted ? "bad" : "good"}` },
    el("p", { class: "stamp", "aria-hidden": "true" }, drifted ? "\u2717" : "\u2713"),
    el("div", {},
      el("p", { class: "model" }, `${OVERVIEW.runs.length} releases, ${OVERVIEW.runs[0].label} to ${OVERVIEW.runs.at(-1).label}`),
      el("h1", {}, drifted ? "The newest release has drifted from a reference" : "The newest release has not drifted, as far as can be shown"),
      reasonList(drifts, "reasons"),
      el("p", { class: "counts" }, el("a", { href: address("cases", { changed: "lost" }) }, "cases that changed for the worse"))));
}

function comparisonHero(runs) {
  const [first, ...others] = OVERVIEW.runs.map((run) => run.label);
  const cases = new Set(runs.flatMap((run) => run.rows.map((row) => row.case))).size;
  return el("section", { class: "hero" }, el("div", {},
    el("p", { class: "model" }, `${OVERVIEW.runs.length} runs side by side`),
    el("h1", {}, `${others.join(", ")} against ${first}`),
    el("p", { class: "counts" }, el("a", { href: address("cases") }, counted(cases, "case")),
      el("a", { href: address("cases", { changed: "any" }) }, "cases that changed"),
      el("a", { href: address("cases", { changed: "lost" }) }, "changed for the worse"))));
}

/** Makes one row per benchmark and one column per run; the best value is bold. */
function glanceTable() {
  const head = ["benchmark", "metric", ...OVERVIEW.runs.map((run) => run.label)];
  return scrolled(el("table", { class: "figures" },
    el("thead", {}, el("tr", {}, head.map((title, place) => el("th", { scope: "col", class: place > 1 ? "number" : null }, title)))),
    el("tbody", {}, OVERVIEW.benchmarks.map(({ name, metric, found: estimates }) => {
      const best = bestOf(estimates.map((estimate) => estimate?.value), isLowerBetter(name, metric));
      return el("tr", {}, el("th", { scope: "row" }, el("a", { href: address("cases", { benchmark: name }) }, name)),
        el("td", {}, metric, " ", direction(name, metric)),
        estimates.map((estimate) => el("td", { class: `number${estimate && estimate.value === best ? " best" : ""}` }, withInterval(estimate))));
    }))));
}

function bestOf(values, lower) {
  const numbers = values.filter(Number.isFinite);
  if (numbers.length < 2 || Math.min(...numbers) === Math.max(...numbers)) return null;
  return lower ? Math.min(...numbers) : Math.max(...numbers);
}

function direction(benchmark, metric) {
  const lower = isLowerBetter(benchmark, metric);
  return el("span", { class: "soft", title: lower ? "less is better" : "more is better" }, lower ? "\u2193" : "\u2191");
}

/** Compares all pairs of runs by one metric of a benchmark; the reader chooses the metric. */
function pairsPart({ name, metric }) {
  const metrics = [...new Set(OVERVIEW.differences.filter((one) => one.benchmark === name).map((one) => one.metric))];
  if (!metrics.length) return null;
  // The primary metric may be missing, for example without a judge.
  const first = metrics.includes(metric) ? metric : metrics[0];
  const lines = el("div", {});
  const draw = (chosen) => replaceChildren(lines, pairLines(name, chosen));
  draw(first);
  return part(name, [
    el("label", { class: "choice" }, el("span", {}, "All pairs by "),
      el("select", { onchange: (event) => draw(event.target.value) }, metrics.map((name) => el("option", { value: name, selected: name === first }, name)))),
    lines,
  ], `pairs-${name}`);
}

function pairLines(name, metric) {
  const pairs = OVERVIEW.differences.filter((one) => one.benchmark === name && one.metric === metric && one.part === "");
  const extent = Math.max(...pairs.flatMap(({ value, low, high }) => [value, low, high]).filter(Number.isFinite).map(Math.abs), 0.01) * 1.06;
  const count = (OVERVIEW.runs.length * (OVERVIEW.runs.length - 1)) / 2;
  return [pairs.map((pair) => pairLine(name, metric, pair, extent)),
    el("p", { class: "note" }, "Each line: the second run minus the first, over the questions that both scored, epochs averaged, with its 95% interval. p: exact McNemar for independent 0/1 scores, else the paired t test over clusters.",
      count > 1 ? ` p and interval are corrected for ${count} pairs (Bonferroni).` : "")];
}

function pairLine(name, metric, difference, extent) {
  const { first, second, p } = difference;
  const better = isLowerBetter(name, metric) ? difference.value < 0 : difference.value > 0;
  const tone = p >= 0.05 || !difference.value ? "open" : better ? "good" : "bad";
  const changes = { benchmark: name, metric, subject: String(second), against: String(first), changed: "any" };
  return el("div", { class: `gate ${tone}` },
    el("span", { class: "mark", "aria-hidden": "true" }, tone === "open" ? "\u2248" : better ? "\u2191" : "\u2193"),
    el("div", { class: "what" }, el("a", { href: address("cases", changes) }, `${OVERVIEW.runs[second].label} against ${OVERVIEW.runs[first].label}`),
      el("span", { class: "said" }, tone === "open" ? "could be chance" : better ? "better" : "worse")),
    differenceBar(difference, extent, { tone }),
    el("span", { class: "figure" }, `${signed(difference.value)} [${fixed(difference.low)}, ${fixed(difference.high)}]`,
      el("small", {}, `p ${probability(p).replace(/^(?!<)/, "= ")} \u00b7 ${counted(difference.n, "question")}`)));
}
