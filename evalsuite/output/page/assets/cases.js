// The cases of each run, as rows over columns, and the whole record of one.

const OUTCOMES = ["passed", "failed", "error", "skipped"];
const OUTCOME_WORDS = { passed: "passed", failed: "below threshold", error: "error", skipped: "skipped" };
/** So many cases of an outcome, in words. */
const countedOutcome = (count, outcome) => `${whole(count)} ${outcome === "error" && count !== 1 ? "errors" : OUTCOME_WORDS[outcome]}`;
const OUTCOME_MARKS = { passed: "\u2713", failed: "\u2717", error: "!", skipped: "\u2013" };

class Row {
  constructor(run, block, place) {
    this.run = run;
    this.block = block;
    this.place = place;
  }

  get case() {
    return this.block.prefix + this.block.case[this.place];
  }

  get benchmark() {
    return this.block.benchmark;
  }

  get sample() {
    return this.block.sample[this.place];
  }

  get epoch() {
    return this.block.epoch[this.place];
  }

  get outcome() {
    return OUTCOMES[this.block.outcome[this.place]];
  }

  /** How many epochs of its sample must pass; null where each case stands for itself. */
  get needed() {
    return this.block.needed?.[this.place] ?? null;
  }

  get cause() {
    return word(this.block.cause, this.place);
  }

  /** What the case is called for short: what is between the brackets of its id. */
  get name() {
    const start = this.case.indexOf("[");
    return start < 0 ? this.case.split("::").pop() : this.case.slice(start + 1, -1);
  }

  /** What was asked, and in which mode: the same in every run and epoch. */
  get question() {
    const mode = this.tag("mode") ?? "";
    const written = mode.replaceAll(":", "-");
    const withoutMode = mode && this.sample !== written && this.sample.endsWith(written)
      ? this.sample.slice(0, -written.length) : this.sample;
    return JSON.stringify([this.benchmark, mode ? withoutMode.replace(/[-|]+$/, "") : this.sample, mode]);
  }

  tag(name) {
    const column = this.block.tags[name];
    return column ? word(column, this.place) : null;
  }

  tags() {
    return Object.keys(this.block.tags)
      .map((name) => [name, this.tag(name)])
      .filter(([, value]) => value !== null);
  }

  /** A score; errors have none. */
  score(metric) {
    if (this.outcome === "error") return null;
    if (metric === "pass_rate") return { passed: 1, failed: 0 }[this.outcome] ?? null;
    return this.block.scores[metric]?.[this.place] ?? null;
  }

  text(column) {
    return this.block[column][this.place];
  }

  number(column) {
    return this.block[column][this.place];
  }
}

function word(column, place) {
  const code = column.codes[place];
  return code < 0 ? null : column.words[code];
}

class Cases {
  constructor(number, blocks) {
    this.number = number;
    this.rows = [];
    this.benchmarks = new Map();
    for (const block of blocks) {
      this.benchmarks.set(block.benchmark, block);
      for (let place = 0; place < block.case.length; place++) this.rows.push(new Row(this, block, place));
    }
  }

  /** Rows by their case's id; made when it is first asked for, as is the next. */
  get byCase() {
    this.rowOfCase ??= new Map(this.rows.map((row) => [row.case, row]));
    return this.rowOfCase;
  }

  /** Rows by what they ask, of all epochs. */
  get byQuestion() {
    return byQuestion(this.rows);
  }

  /** The row of the same case or, where the runs had different epochs, of the same question. */
  like(row) {
    return this.byCase.get(row.case) ?? this.byQuestion.get(row.question)?.[0];
  }

  rowAt(chunk, line) {
    this.rowOfPlace ??= new Map(this.rows.map((row) => [row.block.chunk[row.place] * 1e6 + row.block.line[row.place], row]));
    return this.rowOfPlace.get(chunk * 1e6 + line);
  }

  /** How many chunks hold its records. */
  get chunks() {
    let most = -1;
    for (const block of this.benchmarks.values()) for (const chunk of block.chunk) if (chunk > most) most = chunk;
    return most + 1;
  }

  metrics(benchmark) {
    return Object.keys(this.benchmarks.get(benchmark)?.scores ?? {});
  }
}

const grouped = new WeakMap();

/** The rows of each question, in the order of first appearance; kept as long as the list of rows is. */
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

/** The cases of a run by its number. */
async function readCases(number) {
  return new Cases(number, JSON.parse(await textOf(`index-${number}`)));
}

/** A case's whole record; null where the page holds only its scores. */
async function readRecord(row) {
  const { chunk, line } = row.block;
  if (chunk[row.place] < 0) return null;
  const text = await chunkText(`r${row.run.number}-${chunk[row.place]}`);
  return parseRecord(text.split("\n")[line[row.place]]);
}

function parseRecord(line) {
  try {
    return JSON.parse(line);
  } catch {
    // Python writes numbers that JSON has no word for.
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

/** Rows with whether they passed; where a sample needs k of its epochs, one row per sample with whether it did. */
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

/** Whether enough epochs of a sample passed; null where errors leave that open. */
function holds(epochs) {
  const [passed, unknown] = ["passed", "error"].map((outcome) => epochs.filter((row) => row.outcome === outcome).length);
  const least = epochs[0].needed;
  return passed >= least ? 1 : passed + unknown < least ? 0 : null;
}
