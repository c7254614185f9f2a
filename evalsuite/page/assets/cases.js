// The cases of each run, as rows over columns, and the whole record of one.

const OUTCOMES = ["passed", "failed", "error", "skipped"];
const OUTCOME_WORDS = { passed: "passed", failed: "below threshold", error: "error", skipped: "skipped" };
const OUTCOME_MARKS = { passed: "\u2713", failed: "\u2717", error: "!", skipped: "\u2013" };

class Row {
  constructor(run, block, place) {
    this.run = run;
    this.block = block;
    this.place = place;
    this.case = block.prefix + block.case[place];
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

  get cause() {
    return word(this.block.cause, this.place);
  }

  /** What the case is called for short: what is between the brackets of its id. */
  get name() {
    const start = this.case.indexOf("[");
    return start < 0 ? this.case.split("::").pop() : this.case.slice(start + 1, -1);
  }

  get cluster() {
    return this.tag("cluster") ?? this.sample;
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
    this.byCase = new Map();
    this.byPlace = new Map();
    this.benchmarks = new Map();
    for (const block of blocks) this.add(block);
  }

  add(block) {
    this.benchmarks.set(block.benchmark, block);
    for (let place = 0; place < block.case.length; place++) {
      const row = new Row(this, block, place);
      this.rows.push(row);
      this.byCase.set(row.case, row);
      if (block.chunk[place] >= 0) this.byPlace.set(block.chunk[place] * 1e6 + block.line[place], row);
    }
  }

  /** How many chunks hold its records. */
  get chunks() {
    let most = -1;
    for (const block of this.benchmarks.values()) for (const chunk of block.chunk) if (chunk > most) most = chunk;
    return most + 1;
  }

  rowAt(chunk, line) {
    return this.byPlace.get(chunk * 1e6 + line);
  }

  metrics(benchmark) {
    return Object.keys(this.benchmarks.get(benchmark)?.scores ?? {});
  }
}

/** The cases of a run by its number; read once. */
async function readCases(number) {
  const text = await chunkText(`index-${number}`);
  unpacked.delete(`index-${number}`);
  charactersKept -= text.length;
  return new Cases(number, JSON.parse(text));
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

/** A metric over rows, with its interval. */
function estimateOf(rows, metric) {
  const values = [];
  const clusters = [];
  for (const row of rows) {
    const value = row.score(metric);
    if (value === null) continue;
    values.push(value);
    clusters.push(row.cluster);
  }
  return estimate(values, clusters);
}
