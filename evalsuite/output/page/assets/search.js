// Full-text search over the whole records: questions, answers, programs, judges' words.

/** Words that must all be there; "several words" in quotes stand together. */
function searchTerms(query) {
  return [...query.toLowerCase().matchAll(/"([^"]+)"|(\S+)/g)].map((match) => match[1] ?? match[2].replaceAll('"', ""))
    .filter(Boolean);
}

/**
 * The rows whose records hold all terms.
 *
 * @param cases the run.
 * @param query what is looked for.
 * @param progress called with the share that was searched and the rows found so far.
 * @param signal ends the search early.
 */
async function searchCases(cases, query, progress, signal) {
  const terms = searchTerms(query);
  const matches = new Set();
  for (const row of cases.rows) if (holdsAll(shortText(row), terms)) matches.add(row);
  const chunks = cases.chunks;
  let rested = performance.now();
  let next = chunks ? recordsText(cases, 0) : null;
  for (let chunk = 0; chunk < chunks; chunk++) {
    const text = await next;
    // The next one is on its way while this one is searched.
    next = chunk + 1 < chunks ? recordsText(cases, chunk + 1) : null;
    next?.catch(() => null);
    if (signal.aborted) return matches;
    searchChunk(cases, chunk, text, terms, matches);
    if (performance.now() - rested > 60) {
      progress((chunk + 1) / chunks, matches);
      await new Promise((resolve) => setTimeout(resolve));
      rested = performance.now();
    }
  }
  progress(1, matches);
  return matches;
}

function recordsText(cases, chunk) {
  return chunkText(`r${cases.number}-${chunk}`);
}

/** Unpacks a run while its reader is still looking at the list, so that the first search finds it unpacked. */
async function unpackAhead(cases) {
  if (!staysUnpacked()) return;
  for (let chunk = 0; chunk < cases.chunks; chunk++) {
    await new Promise((resolve) => requestIdleCallback(resolve, { timeout: 500 }));
    await recordsText(cases, chunk).catch(() => null);
  }
}

function searchChunk(cases, chunk, text, terms, matches) {
  const longest = terms.reduce((best, other) => (other.length > best.length ? other : best));
  const pattern = new RegExp(escapePattern(JSON.stringify(longest).slice(1, -1)), "gi");
  let line = 0;
  let start = 0;
  for (let match = pattern.exec(text); match; match = pattern.exec(text)) {
    let end = text.indexOf("\n", start);
    while (end >= 0 && end < match.index) {
      start = end + 1;
      line += 1;
      end = text.indexOf("\n", start);
    }
    if (end < 0) end = text.length;
    const row = cases.rowAt(chunk, line);
    if (row && !matches.has(row) && holdsAll(shownWords(parseRecord(text.slice(start, end))), terms)) matches.add(row);
    pattern.lastIndex = end;
  }
}

function escapePattern(text) {
  return text.replace(/[.*+?^${}()|[\]\\]/g, "\\$&");
}

function holdsAll(text, terms) {
  const lower = text.toLowerCase();
  return terms.every((term) => lower.includes(term));
}

function shortText(row) {
  return `${row.name}\n${row.part("asked")}\n${row.part("answered")}\n${row.part("expected")}`;
}

/** The fields of a record that a reader sees as text when the case is open. */
const SEEN = ["benchmark", "sample", "model", "source", "tags", "input", "target", "transcript", "error", "cause", "notes", "logs"];

function shownWords(record) {
  return SEEN.map((field) => allWords(record[field])).join("\n");
}

/** All texts of a value, without the names of its fields and without encoded pictures. */
function allWords(value) {
  if (typeof value === "string") return /^(?:data:|iVBOR)/.test(value) ? "" : value;
  if (value === null || typeof value !== "object") return "";
  return Object.values(value).map(allWords).join("\n");
}
