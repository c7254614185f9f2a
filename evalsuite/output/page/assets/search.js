// Search the complete records: questions, answers, programs, judges' messages.

/** Splits a query into terms that must all occur; words in quotes are one term. */
function searchTerms(query) {
  return [...query.toLowerCase().matchAll(/"([^"]+)"|(\S+)/g)].map((match) => match[1] ?? match[2].replaceAll('"', ""))
    .filter(Boolean);
}

/**
 * Finds the rows whose records contain all terms.
 *
 * @param cases the run's cases.
 * @param query the text of the search field.
 * @param progress function of the share that was searched and the rows found so far.
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
    // Read the next chunk while this chunk is searched.
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

/** Unpacks a run while its reader looks at the list, so that the first search is fast. */
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

/** Fields of a record that are shown as text when the case is open. */
const SEEN = ["benchmark", "sample", "model", "source", "tags", "input", "target", "transcript", "error", "cause", "notes", "logs"];

function shownWords(record) {
  return SEEN.map((field) => allWords(record[field])).join("\n");
}

/** Lists all texts of a value, without names of fields and without encoded pictures. */
function allWords(value) {
  if (typeof value === "string") return /^(?:data:|iVBOR)/.test(value) ? "" : value;
  if (value === null || typeof value !== "object") return "";
  return Object.values(value).map(allWords).join("\n");
}
