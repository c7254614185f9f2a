// The cases of each run as rows, and the complete record of one case.

const OUTCOMES = ["passed", "failed", "error", "skipped"];
const OUTCOME_WORDS = { passed: "passed", failed: "below threshold", error: "error", skipped: "skipped" };
/** Writes a number of cases with their outcome. */
const countedOutcome = (count, outcome) => `${whole(count)} ${outcome === "error" && count !== 1 ? "errors" : OUTCOME_WORDS[outcome]}`;
const OUTCOME_MARKS = { passed: "\u2713", failed: "\u2717", error: "!", skipped: "\u2013" };

/** Returns a property of the record itself, never an inherited one. */
const own = (object, name) => (Object.hasOwn(object, name) ? object[name] : null);

class Row {
  constructor(run, parts) {
    this.run = run;
    this.parts = parts;
  }

  part(name) {
    return this.parts[this.run.place[name]];
  }

  get case() {
    return this.part("case");
  }

  get benchmark() {
    return this.part("benchmark");
  }

  get sample() {
    return this.part("sample");
  }

  get epoch() {
    return this.part("epoch");
  }

  get outcome() {
    return OUTCOMES[this.part("outcome")];
  }

  /** The number of the sample's epochs that must pass; null if each case counts by itself. */
  get needed() {
    return this.part("needed");
  }

  get cause() {
    return this.part("cause");
  }

  /** The chunk and line of the case's record; null if the page stores only its scores. */
  get at() {
    return this.part("at");
  }

  /** The case's short name: the text between the brackets of its id. */
  get name() {
    const start = this.case.indexOf("[");
    return start < 0 ? this.case.split("::").pop() : this.case.slice(start + 1, -1);
  }

  /** The question and the mode, which are equal in all runs and epochs. */
  get question() {
    const mode = this.tag("mode") ?? "";
    const written = mode.replaceAll(":", "-");
    const withoutMode = mode && this.sample !== written && this.sample.endsWith(written)
      ? this.sample.slice(0, -written.length) : this.sample;
    return JSON.stringify([this.benchmark, mode ? withoutMode.replace(/[-|]+$/, "") : this.sample, mode]);
  }

  tag(name) {
    return own(this.part("tags"), name);
  }

  tags() {
    return Object.entries(this.part("tags"));
  }

  /** A score; null for an error. */
  score(metric) {
    if (this.outcome === "error") return null;
    if (metric === "pass_rate") return { passed: 1, failed: 0 }[this.outcome] ?? null;
    return own(this.part("scores"), metric);
  }
}

class Cases {
  constructor(number, names, rows) {
    this.number = number;
    this.place = Object.fromEntries(names.map((name, place) => [name, place]));
    this.rows = rows.map((parts) => new Row(this, parts));
    this.benchmarks = new Map();
    for (const row of this.rows) this.wordsOf(row.benchmark).add(row);
  }

  wordsOf(benchmark) {
    if (!this.benchmarks.has(benchmark)) this.benchmarks.set(benchmark, new Words(benchmark));
    return this.benchmarks.get(benchmark);
  }

  /** Rows by case id; the map is created on first use. */
  get byCase() {
    this.rowOfCase ??= new Map(this.rows.map((row) => [row.case, row]));
    return this.rowOfCase;
  }

  /** Rows of all epochs by question. */
  get byQuestion() {
    return byQuestion(this.rows);
  }

  /** Finds the row of the same case or, if the runs had different epochs, of the same question. */
  like(row) {
    return this.byCase.get(row.case) ?? this.byQuestion.get(row.question)?.[0];
  }

  rowAt(chunk, line) {
    this.rowOfPlace ??= new Map(this.rows.filter((row) => row.at).map((row) => [row.at[0] * 1e6 + row.at[1], row]));
    return this.rowOfPlace.get(chunk * 1e6 + line);
  }

  /** The number of chunks that store the run's records. */
  get chunks() {
    let most = -1;
    for (const { at } of this.rows) if (at && at[0] > most) most = at[0];
    return most + 1;
  }

  metrics(benchmark) {
    return [...(this.benchmarks.get(benchmark)?.metrics ?? [])];
  }
}

/** The values in a benchmark's rows: causes of errors, values of each tag, names of metrics. */
class Words {
  constructor(benchmark) {
    this.benchmark = benchmark;
    this.causes = new Set();
    this.tags = new Map();
    this.metrics = new Set();
  }

  add(row) {
    if (row.cause !== null) this.causes.add(row.cause);
    for (const metric of Object.keys(row.part("scores"))) this.metrics.add(metric);
    for (const [tag, value] of row.tags()) {
      if (!this.tags.has(tag)) this.tags.set(tag, new Set());
      this.tags.get(tag).add(value);
    }
  }
}

const grouped = new WeakMap();

/** Groups rows by question, in order of first appearance; the result is cached as long as the list of rows exists. */
function byQuestion(rows) {
  if (grouped.has(rows)) return grouped.get(rows);
  const asked = new Map();
  grouped.set(rows, asked);
  for (const row of rows) {
    const epochs = asked.get(row.question);
    if (epochs) epochs.push(row);
    else asked.set(row.question, [row]);
  }
  return asked;
}

/** Reads the cases of a run, given the run's number. */
async function readCases(number) {
  const [names, ...rows] = JSON.parse(await textOf(`index-${number}`));
  return new Cases(number, names, rows);
}

/** Reads a case's complete record; null if the page stores only its scores. */
async function readRecord(row) {
  if (!row.at) return null;
  const [chunk, line] = row.at;
  const text = await chunkText(`r${row.run.number}-${chunk}`);
  return parseRecord(text.split("\n")[line]);
}

function parseRecord(line) {
  try {
    return JSON.parse(line);
  } catch {
    // Python writes numbers (NaN, Infinity) that JSON lacks.
    return JSON.parse(line.replace(/(?<=[[:,])(?:NaN|-?Infinity)(?=[,\]}])/g, "null"));
  }
}

/** The mean of a metric over rows of one benchmark, without an interval; null if nothing was measured. */
function meanOverRows(rows, metric) {
  const measured = metric === "pass_rate" ? rowsThatCount(rows) : rows.map((row) => [row, row.score(metric)]);
  const values = measured.map(([, value]) => value).filter((value) => value !== null);
  const sum = values.reduce((total, value) => total + value, 0);
  return values.length ? { value: sum / values.length, low: null, high: null, n: values.length } : null;
}

/** Lists rows with whether they passed; if a sample needs k of its epochs, its rows are merged into one. */
function rowsThatCount(rows) {
  const repeated = new Map();
  const counted = [];
  for (const row of rows) {
    if (row.needed === null) counted.push([row, row.score("pass_rate")]);
    else if (repeated.has(row.sample)) repeated.get(row.sample).push(row);
    else repeated.set(row.sample, [row]);
  }
  for (const epochs of repeated.values()) counted.push([epochs[0], holds(epochs)]);
  return counted;
}

/** Tells whether enough epochs of a sample passed; null if errors leave this open. */
function holds(epochs) {
  const [passed, unknown] = ["passed", "error"].map((outcome) => epochs.filter((row) => row.outcome === outcome).length);
  const least = epochs[0].needed;
  return passed >= least ? 1 : passed + unknown < least ? 0 : null;
}
