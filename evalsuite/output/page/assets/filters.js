// Filter, sort and choose the shown cases, and store these settings in the page's address.

const NOTHING_FILTERED = {
  benchmark: "", outcome: [], tag: [], metric: "", min: "", max: "", cause: "", changed: "", gate: "", q: "",
};
const DEFAULTS = { ...NOTHING_FILTERED, sort: "", columns: [], case: "", subject: "", against: "" };
const LISTS = new Set(["outcome", "tag", "columns"]);

/** Reads the view and its state from the address. */
function readAddress(hash) {
  const [view, query = ""] = hash.replace(/^#/, "").split("?");
  const state = { ...DEFAULTS, view: VIEWS.includes(view) ? view : "overview" };
  for (const [name, value] of new URLSearchParams(query)) {
    if (!(name in DEFAULTS)) continue;
    state[name] = LISTS.has(name) ? [...state[name], value] : value;
  }
  return state;
}

function writeAddress(state) {
  const query = new URLSearchParams();
  for (const name of Object.keys(DEFAULTS)) {
    for (const value of [state[name]].flat()) if (value !== "") query.append(name, value);
  }
  const text = query.toString();
  return `#${state.view}${text ? `?${text}` : ""}`;
}

/** Writes the address of a view with other filters. */
function address(view, changes = {}) {
  return writeAddress({ ...DEFAULTS, view, ...changes });
}

/** Finds the metric by which a row is shown and ranked. */
function metricOf(row, state) {
  return state.metric || PRIMARY.get(row.benchmark) || null;
}

/** Lists the rows that pass all filters except the search. */
function filterRows(rows, state, other) {
  const gate = state.gate === "" ? null : (OVERVIEW.verdict?.gates ?? [])[Number(state.gate)];
  const tags = state.tag.map((text) => text.split(/:(.*)/s));
  const [low, high] = [state.min, state.max].map((text) => (text === "" ? null : Number(text)));
  return rows.filter((row) => {
    if (state.benchmark && row.benchmark !== state.benchmark) return false;
    if (state.outcome.length && !state.outcome.includes(row.outcome)) return false;
    if (state.cause && row.cause !== state.cause) return false;
    if (!tags.every(([name, value]) => row.tag(name) === value)) return false;
    if (gate && !isBehind(gate, row)) return false;
    if (low !== null || high !== null || (state.metric && !state.benchmark)) {
      const score = row.score(metricOf(row, state));
      if (score === null || (low !== null && score < low) || (high !== null && score > high)) return false;
    }
    return !state.changed || hasChanged(row, state, other);
  });
}

/** Tells whether a gate covers a case. */
function isBehind(gate, row) {
  if (gate.benchmark !== "*" && gate.benchmark !== row.benchmark) return false;
  if (gate.value === null) return true;
  return gate.tag ? row.tag(gate.tag) === gate.value : row.tags().some(([, value]) => value === gate.value);
}

function hasChanged(row, state, other) {
  const before = other?.like(row);
  if (state.changed === "new") return Boolean(other) && !before;
  if (!before) return false;
  const metric = metricOf(row, state);
  const loss = lossOf(row, before, metric);
  if (state.changed === "lost") return loss > 0;
  if (state.changed === "won") return loss < 0;
  return loss !== 0 || row.outcome !== before.outcome;
}

/** Measures how much worse a case is than before; 0 if nothing can be compared. */
function lossOf(row, before, metric) {
  const [now, then] = [row.score(metric), before?.score(metric) ?? null];
  if (now === null || then === null) {
    if (!before) return 0;
    return Number(before.outcome === "passed") - Number(row.outcome === "passed");
  }
  return isLowerBetter(row.benchmark, metric) ? now - then : then - now;
}

function isLowerBetter(benchmark, metric) {
  return LOWER_IS_BETTER.has(`${benchmark}.${metric}`);
}

/** Sorts rows in the order that the state selects. */
function sortRows(rows, state, other) {
  const downwards = state.sort.startsWith("-");
  const name = state.sort.replace(/^-/, "");
  const key = name ? sortKey(name, state, other) : defaultKey(state, other);
  const keyed = rows.map((row, place) => ({ row, place, key: key(row) }));
  const sign = downwards ? -1 : 1;
  // Rows without a value come last in both directions.
  keyed.sort((one, two) => {
    if (one.key === two.key) return one.place - two.place;
    if (one.key === null) return 1;
    if (two.key === null) return -1;
    return one.key < two.key ? -sign : sign;
  });
  return keyed.map(({ row }) => row);
}

/** Sorts by relevance: the greatest losses, or else failures with the lowest scores. */
function defaultKey(state, other) {
  if (other && OVERVIEW.kind === "comparison") {
    return (row) => {
      const before = other.like(row);
      const loss = lossOf(row, before, metricOf(row, state));
      return loss === 0 ? Infinity : -Math.abs(loss) - (loss > 0 ? 1e-9 : 0);
    };
  }
  const rank = { error: 0, failed: 1, passed: 2, skipped: 3 };
  return (row) => {
    const metric = metricOf(row, state);
    const score = row.score(metric) ?? 0;
    const worse = isLowerBetter(row.benchmark, metric) ? -score : score;
    return rank[row.outcome] * 1e9 + worse;
  };
}

function sortKey(name, state, other) {
  const simple = {
    case: (row) => row.case,
    benchmark: (row) => row.benchmark,
    outcome: (row) => OUTCOMES.indexOf(row.outcome),
    score: (row) => row.score(metricOf(row, state)),
    before: (row) => other?.like(row)?.score(metricOf(row, state)) ?? null,
    change: (row) => changeOf(row, state, other),
    cause: (row) => row.cause,
  };
  if (name in simple) return simple[name];
  if (name.startsWith("tag:")) return (row) => row.tag(name.slice(4));
  if (name.startsWith("score:")) return (row) => row.score(name.slice(6));
  return (row) => row.part(name) ?? null;
}

/** Subtracts the other run's score from this run's score. */
function changeOf(row, state, other) {
  const metric = metricOf(row, state);
  const [now, then] = [row.score(metric), other?.like(row)?.score(metric) ?? null];
  return now === null || then === null ? null : now - then;
}
