// Show one case: question, answer, target, scores, and all messages.

const MOST_RENDERED = 200000; // characters of one text that are shown at once

async function showCase() {
  const article = document.getElementById("case");
  const row = list.cases.byCase.get(state.case) ?? list.other?.byCase.get(state.case);
  article.hidden = !row;
  document.querySelector(".split").classList.toggle("open", Boolean(row));
  if (!row) return;
  const wanted = state.case;
  const runs = await recordsOf(row);
  if (state.case !== wanted) return;
  const epochs = await epochsOf(row);
  replaceChildren(article, caseHead(row), el("div", { class: "case-body" }, caseParts(row, runs, epochs)));
  article.scrollTop = 0;
}

/** Reads the record of the case from each run that has the case, from this run first. */
async function recordsOf(row) {
  const numbers = OVERVIEW.kind === "comparison" ? [subjectNumber(), ...OVERVIEW.runs.keys()] : [0, ...(list.other ? [1] : [])];
  const runs = [];
  for (const number of new Set(numbers)) {
    const its = (await casesOf(number)).like(row);
    if (its) runs.push({ row: its, record: await readRecord(its), label: OVERVIEW.runs[number].label });
  }
  return runs;
}

async function epochsOf(row) {
  const siblings = row.run.rows.filter((sibling) => sibling.benchmark === row.benchmark && sibling.sample === row.sample);
  if (siblings.length < 2) return [];
  return Promise.all(siblings.slice(0, 12).map(async (sibling) => ({ row: sibling, record: await readRecord(sibling) })));
}

function caseHead(row) {
  const place = list.rows.findIndex((listed) => listed.case === row.case);
  const step = (by, label, title) => el("button", { type: "button", class: "quiet", title, disabled: place + by < 0 || place + by >= list.rows.length, onclick: () => choose(place + by) }, label);
  return el("header", { class: "case-head" },
    el("div", {}, el("h2", {}, el("span", { class: `mark ${row.outcome}`, title: OUTCOME_WORDS[row.outcome] }, OUTCOME_MARKS[row.outcome]), " ", row.name),
      el("p", { class: "soft" }, row.benchmark, place >= 0 ? ` \u00b7 ${whole(place + 1)} of ${whole(list.rows.length)}` : " \u00b7 not among the filtered")),
    el("div", { class: "buttons" }, step(-1, "\u2190 k", "Previous case (k)"), step(1, "j \u2192", "Next case (j)"),
      el("button", { type: "button", class: "quiet", title: "Close (Esc)", onclick: closeCase }, "Close")));
}

function caseParts(row, runs, epochs) {
  const own = runs[0];
  const { record } = own;
  return [
    record?.error ? el("div", { class: `said-error ${row.outcome}` }, el("strong", {}, record.cause ?? OUTCOME_WORDS[row.outcome]), text(record.error)) : null,
    scoreTable(runs),
    tagLine(row),
    record ? casePart("Question", withTables(record.input, "question")) : casePart("Question", row.part("asked")),
    runs.length > 1 ? sideBySide(runs) : answerAndTarget(record ?? { transcript: { answer: row.part("answered") }, target: row.part("expected") }),
    epochs.length ? epochPart(epochs, row) : null,
    record ? judgePart(record) : null,
    record ? conversationPart(record) : null,
    record ? eventPart(record) : null,
    usagePart(row, record),
    commandPart(row),
    record ? jsonPart(record) : el("p", { class: "note" }, "The page holds only the scores of this case in this run."),
  ];
}

function casePart(title, ...content) {
  return el("section", {}, el("h3", {}, title), content);
}

function folded(title, content, open = false) {
  return el("details", { open }, el("summary", {}, title), content);
}

function text(value, className = "text") {
  const shown = typeof value === "string" ? value : JSON.stringify(value, null, 1) ?? "";
  if (!shown) return el("p", { class: "soft" }, "(empty)");
  if (shown.length <= MOST_RENDERED) return el("div", { class: className, dir: "auto" }, shown);
  const rest = el("button", { type: "button", class: "quiet", onclick: () => rest.replaceWith(el("div", { class: className, dir: "auto" }, shown.slice(MOST_RENDERED))) }, `Show ${whole(shown.length - MOST_RENDERED)} more characters`);
  return [el("div", { class: className, dir: "auto" }, shown.slice(0, MOST_RENDERED)), rest];
}

/** Shows a text unchanged, and the tables in the text as tables. */
function withTables(value, label) {
  const tables = typeof value === "string" && value.length < MOST_RENDERED ? findTables(value) : [];
  return [text(value), tables.slice(0, 6).map((table) => folded(`${table.format} table, rendered`, tableFrame(table, label), true))];
}

function targetText(target) {
  if (target === null || target === undefined) return "";
  return Array.isArray(target) ? target.map(String).join("\n") : String(target);
}

function answerOf(record) {
  return record?.transcript?.answer ?? "";
}

function answerAndTarget(record) {
  const [answer, target] = [answerOf(record), targetText(record.target)];
  if (!target) return casePart("Answer", withTables(answer, "answer"), reasoningOf(record));
  const diff = wordDiff(target, answer);
  const pane = (title, parts, raw) => el("div", {}, el("h3", {}, title), parts ? el("div", { class: "text", dir: "auto" }, parts.length ? parts : el("span", { class: "soft" }, "(empty)")) : text(raw), rendered(raw, title));
  return el("section", {}, el("div", { class: "pair" },
    pane(Array.isArray(record.target) ? "Target, any of" : "Target", diff && marked(diff.before, "del", "missing in the answer"), target),
    pane("Answer", diff && marked(diff.after, "ins", "not in the target"), answer)), reasoningOf(record));
}

function rendered(value, label) {
  return findTables(value).slice(0, 4).map((table) => folded(`${table.format} table, rendered`, tableFrame(table, label), true));
}

function reasoningOf(record) {
  return record.transcript?.reasoning ? folded("Reasoning", text(record.transcript.reasoning)) : null;
}

/** Shows each run's answer; the first answer is compared with the target, the others with the first. */
function sideBySide(runs) {
  const target = targetText(runs.find((run) => run.record)?.record.target);
  const first = answerOf(runs[0].record);
  return el("section", {}, target ? casePart("Target", withTables(target, "target")) : null,
    el("div", { class: "pair" }, runs.map(({ row, record, label }, place) => {
      const answer = record ? answerOf(record) : row.part("answered");
      const diff = place ? wordDiff(first, answer) : target ? wordDiff(target, answer) : null;
      return el("div", {}, el("h3", {}, label, " ", el("span", { class: `mark ${row.outcome}` }, OUTCOME_MARKS[row.outcome])),
        diff ? el("div", { class: "text", dir: "auto" }, marked(diff.after, "ins", place ? "other than in the first" : "not in the target")) : text(answer),
        row.outcome === "error" && record?.error ? el("p", { class: "soft" }, record.error) : null, rendered(answer, label));
    })));
}

function scoreTable(runs) {
  const metrics = [...new Set(runs.flatMap(({ row }) => Object.keys(row.part("scores")).filter((metric) => row.score(metric) !== null)))];
  if (!metrics.length) return null;
  const notes = runs[0].record?.notes ?? {};
  const primary = metricOf(runs[0].row, state);
  metrics.sort((one, two) => (two === primary) - (one === primary));
  const hasNotes = metrics.some((metric) => notes[metric]);
  return el("section", {}, scrolled(el("table", { class: "figures scores" },
    el("thead", {}, el("tr", {}, el("th", { scope: "col" }, "score"), runs.map(({ label }) => el("th", { scope: "col", class: "number" }, runs.length > 1 ? label : "")), hasNotes ? el("th", { scope: "col" }, "why") : null)),
    el("tbody", {}, metrics.map((metric) => el("tr", { class: metric === primary ? "first" : null }, el("th", { scope: "row" }, metric),
      runs.map(({ row }) => el("td", { class: "number" }, fixed(row.score(metric)))), hasNotes ? el("td", {}, notes[metric] ?? "") : null))))));
}

function tagLine(row) {
  const tags = row.tags();
  if (!tags.length) return null;
  return el("p", { class: "chips" }, tags.map(([name, value]) =>
    el("a", { class: "chip", href: address("cases", { benchmark: row.benchmark, tag: [`${name}:${value}`] }), title: `Cases with ${name} ${value}` }, `${name}: ${value}`)));
}

function epochPart(epochs, own) {
  return casePart(`Epochs of ${own.sample}`, el("div", { class: "pair" }, epochs.map(({ row, record }) =>
    el("div", { class: row.case === own.case ? "current" : null },
      el("h4", {}, el("span", { class: `mark ${row.outcome}` }, OUTCOME_MARKS[row.outcome]), ` epoch ${row.epoch}: ${scoreCell(row)}`),
      text(record ? answerOf(record) || record.error : row.part("answered"))))));
}

function judgePart(record) {
  const logs = Object.entries(record.logs ?? {}).filter(([, log]) => log.length);
  if (!logs.length) return null;
  return casePart("Judges", logs.map(([metric, log]) => folded(`${metric}: ${counted(log.length, "entry", "entries")}`, log.map(spoken), logs.length === 1)));
}

const SPOKEN = new Set(["kind", "role", "content", "reasoning", "speaker", "turn", "order", "model"]);

/** Shows one message of a debate or of a judge's conversation. */
function spoken(entry) {
  if (entry === null || typeof entry !== "object") return text(String(entry));
  const speaker = entry.speaker ?? "judge";
  const lead = [["assistant", undefined].includes(entry.role) ? speaker : `to ${speaker}`, entry.turn && `turn ${entry.turn}`, entry.order && `order ${entry.order}`, entry.model];
  const others = Object.entries(entry).filter(([name]) => !SPOKEN.has(name));
  return el("div", { class: `message ${entry.role ?? "assistant"}` }, el("h4", {}, lead.filter(Boolean).join(" \u00b7 ")),
    entry.reasoning ? folded("Reasoning", text(entry.reasoning)) : null, entry.content ? text(String(entry.content)) : null, fields(others));
}

function fields(pairs) {
  if (!pairs.length) return null;
  return el("dl", { class: "fields-of" }, pairs.map(([name, value]) => el("div", {}, el("dt", {}, name.replaceAll("_", " ")), el("dd", {}, text(value, "code")))));
}

function conversationPart(record) {
  const messages = record.transcript?.messages ?? [];
  if (!messages.length) return null;
  return el("section", {}, folded(`Conversation, ${counted(messages.length, "message")}`, messages.map(message), messages.length < 12));
}

function message(turn) {
  return el("div", { class: `message ${turn.role}` }, el("h4", {}, turn.role, turn.tool_call_id ? ` \u00b7 answers ${turn.tool_call_id}` : ""),
    Array.isArray(turn.content) ? turn.content.map(messagePart) : turn.content ? text(turn.content) : null,
    (turn.tool_calls ?? []).map((call) => el("div", { class: "call" }, el("h4", {}, `calls ${call.function?.name ?? "?"}`, call.id ? ` \u00b7 ${call.id}` : ""), text(prettyJson(call.function?.arguments ?? ""), "code"))));
}

const PICTURE = /^data:image\/(png|jpeg|gif|webp);base64,[\w+/=]+$/;

/** Shows a part of a message's content: only pictures of types without scripts, and nothing is fetched. */
function messagePart(part) {
  const url = part?.image_url?.url ?? "";
  if (PICTURE.test(url)) return el("img", { class: "figure-of", src: url, alt: "picture in the message" });
  if (typeof part?.text === "string") return text(part.text);
  return text(`(${part?.type ?? "part"}${url && !url.startsWith("data:") ? `: ${url}` : part?.file?.filename ? `: ${part.file.filename}` : ""})`);
}

function prettyJson(source) {
  try {
    return JSON.stringify(JSON.parse(source), null, 1);
  } catch {
    return source;
  }
}

function eventPart(record) {
  const events = (record.transcript?.events ?? []).filter((event) => event && typeof event === "object");
  if (!events.length) return null;
  const programs = events.filter((event) => event.kind === "program").length;
  const title = programs === events.length ? counted(programs, "program") : counted(events.length, "step");
  return el("section", {}, folded(capital(title), events.map((event) => (event.kind === "program" ? program(event) : event.kind === "said" ? spoken(event) : stepOf(event))), events.length < 8));
}

function program(event) {
  const state = event.timed_out ? "timed out" : event.error ? "failed" : "ran";
  return el("div", { class: "message program" }, el("h4", {}, `program ${state} \u00b7 ${duration(event.seconds)}`), text(event.code ?? "", "code"),
    event.stdout ? [el("h4", {}, "printed"), text(event.stdout, "code"), rendered(event.stdout, "output")] : null,
    event.error ? [el("h4", {}, "error"), text(event.error, "code bad")] : null, figures(event.figures), texts(event.files));
}

/** Shows texts that a program wrote to files. */
function texts(list) {
  if (!Array.isArray(list)) return null;
  return list.filter((file) => typeof file?.text === "string").map((file) => folded(`file ${file.name}`, text(file.text, "code")));
}

/** Shows pictures that a program drew; only PNG, because this type cannot contain scripts. */
function figures(list) {
  if (!Array.isArray(list)) return null;
  const data = list.map((figure) => String(figure?.png ?? figure?.data ?? figure).replace(/^data:image\/png;base64,/, "")).filter((figure) => /^iVBOR[\w+/=]+$/.test(figure));
  return data.map((figure, place) => el("img", { class: "figure-of", src: `data:image/png;base64,${figure}`, alt: `figure ${place + 1} of the program` }));
}

function stepOf(event) {
  const title = [event.kind, event.turn && `turn ${event.turn}`, event.name ?? event.tool].filter(Boolean).join(" \u00b7 ");
  const others = Object.entries(event).filter(([name, value]) => !["kind", "turn", "name", "tool"].includes(name) && value !== null && value !== "" && value !== false);
  return el("div", { class: "message tool" }, el("h4", {}, title), fields(others));
}

function usagePart(row, record) {
  const usage = record?.usage;
  const pairs = [["Seconds", fixed(row.part("seconds"), 2)], ["Tokens", usage ? `${whole(usage.prompt_tokens)} read, ${whole(usage.completion_tokens)} written${usage.estimated ? `, estimated for ${whole(usage.estimated)} of the calls` : ""}` : whole(row.part("tokens"))],
    ["Calls", usage ? whole(usage.calls) : ABSENT], ["Cost", money(row.part("cost"))], ["Model", record?.model ?? ABSENT], ["Samples", record?.source ?? ABSENT]];
  return el("section", {}, el("dl", { class: "facts" }, pairs.map(([name, value]) => el("div", {}, el("dt", {}, name), el("dd", {}, value)))));
}

function shellQuoted(word) {
  return /^[\w@%+=:,./-]+$/.test(word) ? word : `'${word.replaceAll("'", "'\"'\"'")}'`;
}

function commandPart(row) {
  const run = OVERVIEW.runs[row.run.number];
  const again = ["pytest", row.case, ...run.options].map(shellQuoted).join(" ");
  const stored = ["pytest", row.case, "--replay", run.name].map(shellQuoted).join(" ");
  return casePart("Run it again", [again, stored].map((command, place) =>
    el("div", { class: "command" }, el("code", {}, command), copyButton("Copy", command), place ? el("small", {}, "with the stored answer") : null)));
}

function jsonPart(record) {
  const json = JSON.stringify(record, null, 1);
  const details = folded("The record as JSON", []);
  details.addEventListener("toggle", () => {
    if (details.open && !details.querySelector(".code")) append(details, [copyButton("Copy", json), text(json, "code")]);
  });
  return el("section", {}, details);
}
