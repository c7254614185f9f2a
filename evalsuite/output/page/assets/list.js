// Show the list of cases: filters, totals of the filtered cases, and rows that exist only while they are visible.

const ROW_HEIGHT = 36;
const ROWS_AROUND = 12;
const COLUMNS = {
  outcome: { title: "", width: "28px", cell: (row) => el("span", { class: `mark ${row.outcome}`, title: OUTCOME_WORDS[row.outcome] }, OUTCOME_MARKS[row.outcome]) },
  case: { title: "case", width: "minmax(80px, 1.1fr)", cell: (row) => el("span", { title: row.case }, row.name) },
  benchmark: { title: "benchmark", width: "110px", cell: (row) => row.benchmark },
  score: { title: "score", width: "78px", number: true, cell: (row) => scoreCell(row) },
  before: { title: "before", width: "78px", number: true, cell: (row) => fixed(otherRow(row)?.score(metricOf(row, state))) },
  change: { title: "change", width: "78px", number: true, cell: (row) => changeCell(row) },
  asked: { title: "question", width: "minmax(140px, 2fr)", cell: (row) => row.part("asked") },
  answered: { title: "answer", width: "minmax(140px, 2fr)", cell: (row) => row.part("answered") },
  expected: { title: "target", width: "minmax(90px, 1fr)", cell: (row) => row.part("expected") },
  cause: { title: "error", width: "130px", cell: (row) => row.cause ?? "" },
  epoch: { title: "epoch", width: "64px", number: true, cell: (row) => row.epoch },
  tokens: { title: "tokens", width: "74px", number: true, cell: (row) => tokensCell(row) },
  cost: { title: "cost", width: "84px", number: true, cell: (row) => money(row.part("cost")) },
  seconds: { title: "seconds", width: "74px", number: true, cell: (row) => fixed(row.part("seconds"), 1) },
};

const list = { rows: [], cases: null, other: null, chosen: 0, searched: null, searching: null };

function tokensCell(row) {
  const calls = row.part("estimated");
  return el("span", { title: calls ? `estimated for ${whole(calls)} of its calls: the server did not count` : null }, `${calls ? "~" : ""}${whole(row.part("tokens"))}`);
}

function scoreCell(row) {
  const score = row.score(metricOf(row, state));
  return score === null ? ABSENT : fixed(score);
}

function otherRow(row) {
  return list.other?.like(row);
}

function changeCell(row) {
  const difference = changeOf(row, state, list.other);
  if (difference === null) return ABSENT;
  const loss = lossOf(row, otherRow(row), metricOf(row, state));
  return el("span", { class: loss > 0 ? "bad" : loss < 0 ? "good" : "" }, difference === 0 ? "0" : signed(difference));
}

/** Lists the visible columns; tags and single metrics are columns, too. */
function shownColumns() {
  const narrow = window.innerWidth < 700 || (state.case !== "" && !state.columns.length);
  const chosen = state.columns.length ? state.columns : defaultColumns();
  const names = narrow ? chosen.filter((name) => ["outcome", "case", "score", "change"].includes(name)) : chosen;
  return names.map((name) => [name, columnOf(name)]).filter(([, column]) => column);
}

function defaultColumns() {
  const several = !state.benchmark && list.cases.benchmarks.size > 1;
  return ["outcome", "case", ...(several ? ["benchmark"] : []), "score",
    ...(list.other ? ["before", "change"] : []), ...(state.outcome.includes("error") ? ["cause"] : []), "asked", "answered"];
}

function columnOf(name) {
  if (name.startsWith("tag:")) return { title: name.slice(4), width: "110px", cell: (row) => row.tag(name.slice(4)) ?? "" };
  if (name.startsWith("score:")) return { title: name.slice(6), width: "96px", number: true, cell: (row) => fixed(row.score(name.slice(6))) };
  return COLUMNS[name];
}

async function showCases(main) {
  const [subject, against] = [subjectNumber(), againstNumber()];
  list.cases = await casesOf(subject);
  list.other = against === null ? null : await casesOf(against);
  const isFirst = !main.querySelector(".cases");
  if (isFirst) replaceChildren(main, frameOfCases());
  await refreshCases();
  if (isFirst) unpackAhead(list.cases);
}

function frameOfCases() {
  return el("div", { class: "cases" },
    el("h1", { class: "visually-hidden" }, "Cases"),
    el("div", { id: "filters" }),
    el("div", { id: "tallies", class: "tallies" }),
    el("div", { class: "split" },
      el("div", { class: "table" },
        el("div", { id: "columns", class: "line head" }),
        el("div", { id: "rows", class: "rows", role: "listbox", tabindex: "0", "aria-label": "Cases", onscroll: drawRows, onclick: clickRow },
          el("div", { id: "spacer" }))),
      el("article", { id: "case", class: "case", hidden: true, tabindex: "-1", "aria-label": "Case" })));
}

async function refreshCases() {
  showFilters();
  const matches = await searched();
  const kept = filterRows(matches ? list.cases.rows.filter((row) => matches.has(row)) : list.cases.rows, state, list.other);
  list.rows = sortRows(kept, state, list.other);
  const open = list.rows.findIndex((row) => row.case === state.case);
  if (open >= 0) list.chosen = open;
  list.chosen = Math.min(list.chosen, Math.max(0, list.rows.length - 1));
  showTallies();
  showHead();
  drawRows();
  await showCase();
  if (open >= 0) reveal(open);
}

/** Finds the rows that match the search; null without a search. */
async function searched() {
  const key = `${list.cases.number} ${state.q}`;
  if (!searchTerms(state.q).length) {
    list.searching?.abort();
    list.searched = null;
    return null;
  }
  if (list.searched?.key !== key) {
    list.searching?.abort();
    list.searching = new AbortController();
    list.searched = { key, rows: null };
    const started = list.searched;
    started.rows = searchCases(list.cases, state.q, showProgress, list.searching.signal);
  }
  return list.searched.rows;
}

function showProgress(share, matches) {
  const bar = document.getElementById("progress");
  if (!bar) return;
  bar.hidden = share >= 1;
  bar.textContent = share >= 1 ? "" : `searched ${Math.round(share * 100)}%, ${counted(matches.size, "case")} so far`;
}

// ---- filters

function showFilters() {
  const place = document.getElementById("filters");
  // Keep the focus and the cursor of the search field while the filters are redrawn.
  const focus = document.activeElement?.id;
  const cursor = focus === "search" ? document.activeElement.selectionStart : null;
  const open = place.querySelector("details")?.open ?? window.innerWidth >= 700;
  replaceChildren(place, el("details", { class: "filters", open }, el("summary", {}, "Filters"), filterFields()), chips());
  if (focus && place.contains(document.getElementById(focus))) {
    const field = document.getElementById(focus);
    field.focus();
    if (cursor !== null) field.setSelectionRange(cursor, cursor);
  }
}

function filterFields() {
  const { cases } = list;
  const benchmarks = [...cases.benchmarks.keys()];
  const causes = wordsOf((words) => [...words.causes]);
  const gates = (OVERVIEW.verdict?.gates ?? []).map((gate, number) => [String(number), gate.text]);
  return el("div", { class: "fields", role: "search" },
    el("label", { class: "search" }, el("span", {}, "Search"),
      el("input", { id: "search", type: "search", value: state.q, placeholder: "questions, answers, judges\u2019 words", oninput: later((event) => change({ q: event.target.value })) }),
      el("span", { id: "progress", class: "progress", hidden: true })),
    OVERVIEW.runs.length > 1 ? pairFields() : null,
    benchmarks.length > 1 ? select("benchmark", "Benchmark", benchmarks.map((name) => [name, name]), { tag: [], metric: "" }) : null,
    outcomeField(),
    select("metric", "Score", metricsShown().map((name) => [name, name])),
    rangeField("min", "from"), rangeField("max", "to"),
    tagField(),
    list.other ? select("changed", "Changed", [["any", "in any way"], ["lost", "for the worse"], ["won", "for the better"], ["new", "new here"]]) : null,
    causes.length ? select("cause", "Error", causes.map((name) => [name, name])) : null,
    gates.length ? select("gate", "Gate", gates) : null,
    columnField());
}

function wordsOf(select) {
  const shown = [...list.cases.benchmarks.values()].filter((words) => !state.benchmark || words.benchmark === state.benchmark);
  return [...new Set(shown.flatMap(select))].sort();
}

function metricsShown() {
  const names = [...list.cases.benchmarks.keys()].filter((name) => !state.benchmark || name === state.benchmark);
  return [...new Set([...names.flatMap((name) => list.cases.metrics(name)), "pass_rate"])];
}

function later(action) {
  let timer;
  return (event) => {
    clearTimeout(timer);
    timer = setTimeout(() => action(event), 180);
  };
}

function select(name, title, options, besides = {}) {
  return el("label", {}, el("span", {}, title),
    el("select", { id: `filter-${name}`, onchange: (event) => change({ [name]: event.target.value, ...besides }, { step: true }) },
      el("option", { value: "" }, "any"),
      options.map(([value, text]) => el("option", { value, selected: state[name] === value }, text))));
}

function pairFields() {
  const field = (name, title, number) => el("label", {}, el("span", {}, title),
    el("select", { id: `filter-${name}`, onchange: (event) => change({ [name]: event.target.value }, { step: true }) },
      OVERVIEW.runs.map((run, place) => el("option", { value: String(place), selected: place === number }, run.label))));
  return OVERVIEW.kind === "comparison" ? [field("subject", "Run", subjectNumber()), field("against", "against", againstNumber())] : null;
}

function outcomeField() {
  const there = new Set(list.cases.rows.map((row) => row.outcome));
  return el("fieldset", { class: "choices" }, el("legend", {}, "Outcome"), OUTCOMES.filter((outcome) => there.has(outcome)).map((outcome) =>
    el("label", {}, el("input", { id: `outcome-${outcome}`, type: "checkbox", checked: state.outcome.includes(outcome), onchange: () => change({ outcome: toggled(state.outcome, outcome) }, { step: true }) }),
      el("span", {}, OUTCOME_WORDS[outcome]))));
}

function toggled(values, value) {
  return values.includes(value) ? values.filter((other) => other !== value) : [...values, value];
}

function rangeField(name, title) {
  return el("label", { class: "range" }, el("span", {}, title),
    el("input", { id: `filter-${name}`, type: "number", step: "any", value: state[name], oninput: later((event) => change({ [name]: event.target.value })) }));
}

function tagField() {
  const pairs = wordsOf((words) => [...words.tags].filter(([, values]) => values.size <= 60)
    .flatMap(([tag, values]) => [...values].map((value) => `${tag}:${value}`)));
  if (!pairs.length) return null;
  return el("label", {}, el("span", {}, "Tag"),
    el("select", { id: "filter-tag", onchange: (event) => event.target.value && change({ tag: [...state.tag, event.target.value] }, { step: true }) },
      el("option", { value: "" }, "add a tag"), pairs.filter((pair) => !state.tag.includes(pair)).map((pair) => el("option", { value: pair }, pair.replace(":", ": ")))));
}

function columnField() {
  const shown = state.columns.length ? state.columns : defaultColumns();
  const names = [...Object.keys(COLUMNS).filter((name) => list.other || !["before", "change"].includes(name)),
    ...wordsOf((words) => [...words.tags.keys()].map((tag) => `tag:${tag}`)), ...metricsShown().map((metric) => `score:${metric}`)];
  const title = (name) => (name === "outcome" ? "outcome" : columnOf(name).title);
  return el("details", { class: "menu", id: "column-menu", open: document.getElementById("column-menu")?.open }, el("summary", {}, "Columns"),
    el("div", {}, names.map((name) => el("label", {},
      el("input", { id: `column-${name}`, type: "checkbox", checked: shown.includes(name), onchange: () => change({ columns: toggled(shown, name) }) }), el("span", {}, title(name))))));
}

/** Shows each active filter with a button that removes it. */
function chips() {
  const chip = (text, changes) => el("button", { type: "button", class: "chip", "aria-label": `Remove filter ${text}`, onclick: () => change(changes, { step: true }) }, text, el("span", { "aria-hidden": "true" }, "\u00d7"));
  const gate = state.gate === "" ? null : (OVERVIEW.verdict?.gates ?? [])[Number(state.gate)];
  const all = [
    state.q ? chip(`\u201c${state.q}\u201d`, { q: "" }) : null,
    state.benchmark ? chip(state.benchmark, { benchmark: "", tag: [], metric: "" }) : null,
    state.outcome.map((outcome) => chip(OUTCOME_WORDS[outcome], { outcome: toggled(state.outcome, outcome) })),
    state.tag.map((tag) => chip(tag.replace(":", ": "), { tag: toggled(state.tag, tag) })),
    state.min !== "" || state.max !== "" ? chip(`${state.metric || "score"} ${state.min || "\u2026"} to ${state.max || "\u2026"}`, { min: "", max: "" }) : null,
    state.changed ? chip(`changed: ${state.changed}`, { changed: "" }) : null,
    state.cause ? chip(state.cause, { cause: "" }) : null,
    gate ? chip(`behind the gate ${gate.text}`, { gate: "" }) : null,
  ].flat().filter(Boolean);
  if (!all.length) return null;
  return el("div", { class: "chips" }, all, el("button", { type: "button", class: "quiet", onclick: () => change(NOTHING_FILTERED, { step: true }) }, "Clear all"));
}

// ---- totals of the filtered cases

function showTallies() {
  const counts = {};
  for (const row of list.rows) counts[row.outcome] = (counts[row.outcome] ?? 0) + 1;
  const total = list.cases.rows.length;
  const shown = list.rows.length === total ? counted(total, "case") : `${whole(list.rows.length)} of ${counted(total, "case")}`;
  const why = list.rows.length ? whyWithoutInterval(state) : "";
  replaceChildren(document.getElementById("tallies"), el("p", { class: "counts" }, el("strong", {}, shown), list.rows.length ? outcomeBar(counts) : null),
    el("div", { class: "means" }, talliedMetrics().map(([name, mean, difference]) => meanOf(name, mean, difference))),
    why ? el("p", { class: "note" }, why) : null);
  announce(`${shown}`);
}

function meanOf(name, mean, difference) {
  return el("div", { class: "mean" }, el("span", {}, name), el("strong", {}, withInterval(mean)), el("small", {}, `n = ${whole(mean.n)}`),
    difference ? el("small", { class: "change" }, `${signed(difference.value)} [${fixed(difference.low)}, ${fixed(difference.high)}], p ${probability(difference.p).replace(/^(?!<)/, "= ")}`) : null);
}

/** Measures all metrics of one benchmark, or the primary metric of several benchmarks. */
function talliedMetrics() {
  const groups = new Map();
  for (const row of list.rows) {
    if (!groups.has(row.benchmark)) groups.set(row.benchmark, []);
    groups.get(row.benchmark).push(row);
  }
  const wanted = groups.size === 1 && state.benchmark
    ? metricsShown().map((metric) => [state.benchmark, metric])
    : [...groups.keys()].map((name) => [name, state.metric || PRIMARY.get(name) || "pass_rate"]);
  const part = knownPart(state);
  return wanted.map(([name, metric]) => {
    const title = groups.size === 1 && state.benchmark ? metric : `${name}.${metric}`;
    const known = part === null ? null : OVERVIEW.estimates[subjectNumber()]?.[name]?.[part]?.[metric];
    const difference = part === null || !list.other ? null : differenceOf(name, metric, part, againstNumber(), subjectNumber());
    return [title, known ?? meanOverRows(groups.get(name) ?? [], metric), difference];
  }).filter(([, mean]) => mean);
}

/** Tells whether filters choose cases by their answers; such a selection biases means and differences. */
function choosesByAnswers(state) {
  return Boolean(state.q || state.outcome.length || state.min !== "" || state.max !== "" || state.cause || state.changed);
}

/** Names the filtered part with computed intervals: "" for all cases, `tag:value` for a value; else null. */
function knownPart(state) {
  if (choosesByAnswers(state)) return null;
  const gate = state.gate === "" ? null : (OVERVIEW.verdict?.gates ?? [])[Number(state.gate)];
  if (gate && gate.value !== null && !gate.tag) return null;
  const parts = new Set([...state.tag, ...(gate?.tag ? [`${gate.tag}:${gate.value}`] : [])]);
  return parts.size > 1 ? null : [...parts][0] ?? "";
}

function whyWithoutInterval(state) {
  if (choosesByAnswers(state)) return "No intervals or p-values: these cases were chosen by their answers or scores, which biases their means.";
  return knownPart(state) === null ? "No intervals or p-values: they are computed for all cases and for single tag values." : "";
}

/** Finds the difference of the second run from the first in the report's data; null if it was not computed. */
function differenceOf(benchmark, metric, part, first, second) {
  const same = OVERVIEW.differences.filter((one) => one.benchmark === benchmark && one.metric === metric && one.part === part);
  const found = same.find((one) => one.first === first && one.second === second);
  if (found) return found;
  const reversed = same.find((one) => one.first === second && one.second === first);
  return reversed ? { ...reversed, first, second, value: -reversed.value, low: -reversed.high, high: -reversed.low } : null;
}

// ---- rows

function showHead() {
  const columns = shownColumns();
  document.querySelector(".table").style.setProperty("--columns", columns.map(([, column]) => column.width).join(" "));
  replaceChildren(document.getElementById("columns"), columns.map(([name, column]) => {
    const sorted = state.sort.replace(/^-/, "") === name;
    const next = !sorted ? name : state.sort.startsWith("-") ? "" : `-${name}`;
    const title = name === "score" && state.metric ? state.metric : column.title;
    return el("button", { type: "button", class: column.number ? "number" : null, title: `Sort by ${column.title || "outcome"}`, "aria-pressed": sorted ? "true" : "false", onclick: () => change({ sort: next }) },
      title, sorted ? el("span", { "aria-hidden": "true" }, state.sort.startsWith("-") ? " \u2193" : " \u2191") : null);
  }));
}

function drawRows() {
  const box = document.getElementById("rows");
  const spacer = document.getElementById("spacer");
  if (!box) return;
  spacer.style.height = `${list.rows.length * ROW_HEIGHT}px`;
  const first = Math.max(0, Math.floor(box.scrollTop / ROW_HEIGHT) - ROWS_AROUND);
  const last = Math.min(list.rows.length, Math.ceil((box.scrollTop + box.clientHeight) / ROW_HEIGHT) + ROWS_AROUND);
  const columns = shownColumns();
  const lines = [];
  for (let place = first; place < last; place++) lines.push(line(list.rows[place], place, columns));
  if (!list.rows.length) lines.push(el("p", { class: "empty" }, list.cases.rows.length ? "No case passes these filters." : "This run has no cases."));
  replaceChildren(spacer, lines);
  box.setAttribute("aria-activedescendant", list.rows.length ? `row-${list.chosen}` : "");
}

function line(row, place, columns) {
  const chosen = place === list.chosen;
  return el("div", { class: `line row${chosen ? " chosen" : ""}`, id: `row-${place}`, role: "option", "aria-selected": chosen ? "true" : "false",
    "aria-setsize": list.rows.length, "aria-posinset": place + 1, "data-place": place, style: { top: `${place * ROW_HEIGHT}px` } },
  columns.map(([, column]) => el("span", { class: column.number ? "number" : null }, column.cell(row))));
}

function clickRow(event) {
  const place = event.target.closest("[data-place]")?.dataset.place;
  if (place === undefined) return;
  list.chosen = Number(place);
  openChosen();
}

function openChosen() {
  const row = list.rows[list.chosen];
  return row && openCase(row, state.case === "");
}

async function openCase(row, step) {
  state = { ...state, case: row.case };
  history[step ? "pushState" : "replaceState"](null, "", writeAddress(state));
  showHead();
  drawRows();
  await showCase();
  reveal(list.chosen);
}

function closeCase() {
  change({ case: "" }, { step: true });
  document.getElementById("rows")?.focus();
}

function choose(place) {
  if (!list.rows.length) return;
  list.chosen = Math.min(list.rows.length - 1, Math.max(0, place));
  reveal(list.chosen);
  drawRows();
  const row = list.rows[list.chosen];
  if (state.case) openCase(row, false);
  else announce(`${row.name}, ${OUTCOME_WORDS[row.outcome]}`);
}

function reveal(place) {
  const box = document.getElementById("rows");
  const top = place * ROW_HEIGHT;
  if (top < box.scrollTop) box.scrollTop = top;
  else if (top + ROW_HEIGHT > box.scrollTop + box.clientHeight) box.scrollTop = top + ROW_HEIGHT - box.clientHeight;
}

function listKey(event) {
  const inList = event.target.id === "rows" || event.target === document.body;
  const page = Math.floor((document.getElementById("rows")?.clientHeight ?? 0) / ROW_HEIGHT) - 1;
  const steps = { j: 1, k: -1, ...(inList ? { ArrowDown: 1, ArrowUp: -1, PageDown: page, PageUp: -page, Home: -Infinity, End: Infinity } : {}) };
  if (event.key in steps) {
    event.preventDefault();
    choose(list.chosen + steps[event.key]);
  } else if (event.key === "Enter" && inList) openChosen().then(() => document.getElementById("case").focus());
  else if (event.key === "Escape" && state.case) closeCase();
}
