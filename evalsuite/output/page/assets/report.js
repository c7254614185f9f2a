// Show the report's sections: tables, charts and passages, with the figures that report.md prints.

function showReport(main) {
  const sections = OVERVIEW.sections.map(section);
  const links = OVERVIEW.sections.map((section) =>
    el("li", {}, el("button", { type: "button", class: "link", onclick: () => goTo(section.title) }, section.title)));
  replaceChildren(main, el("div", { class: "report" },
    el("nav", { class: "contents", "aria-label": "Sections" }, el("ul", {}, links)), el("div", { class: "sections" }, sections)));
}

function goTo(title) {
  document.getElementById(slug(title))?.scrollIntoView({ block: "start" });
}

function slug(title) {
  return `section-${title.toLowerCase().replace(/[^\p{L}\p{N}]+/gu, "-")}`;
}

function section({ title, blocks }) {
  return el("section", { class: "part", id: slug(title) }, el("h2", {}, title), folding(blocks));
}

/** Shows blocks in order; adjacent tables and charts that the report folds are folded together. */
function folding(blocks) {
  const shown = [];
  let closed = null;
  for (const content of blocks) {
    const drawn = block(content);
    const isDetail = content.folded && content.kind !== "passage";
    if (!isDetail) closed = null;
    if (!drawn) continue;
    if (isDetail && !closed) shown.push(closed = el("details", { class: "block more" }, el("summary", {}, "More tables and pictures")));
    if (isDetail) closed.append(drawn);
    else shown.push(drawn);
  }
  return shown;
}

function block(content) {
  if (content.kind === "table") return tableBlock(content);
  if (content.kind === "passage") return passageBlock(content);
  return chartBlock(content);
}

function tableBlock({ title, columns, rows, note }) {
  if (!rows.length) return null;
  const side = (place) => (columns[place].style === "text" ? null : "number");
  return el("div", { class: "block" }, title ? el("h3", {}, title) : null,
    scrolled(el("table", { class: "figures" },
      el("thead", {}, el("tr", {}, columns.map((column, place) => el("th", { scope: "col", class: side(place) }, column.title)))),
      el("tbody", {}, rows.map((row) => el("tr", {}, row.map((cell, place) => el("td", { class: side(place) }, keepInterval(cell)))))))),
    note ? el("p", { class: "note" }, plainProse(note)) : null);
}

/** Lets a narrow cell break between a value and its interval, and never within the interval. */
function keepInterval(cell) {
  return cell.replace(/(\[[^\]\s]+), (?=[^\s\]]+\]$)/, "$1,\u00a0");
}

function passageBlock({ title, text, folded }) {
  if (!folded) return el("div", { class: "block prose" }, title ? el("h3", {}, title) : null, prose(text));
  return el("details", { class: "block" }, el("summary", {}, title), el("pre", {}, text));
}

function prose(text) {
  return text.split(/\n{2,}/).map((paragraph) => el("p", {}, plainProse(paragraph)));
}

/** Converts the little Markdown in the report's own text: code and bold. */
function plainProse(text) {
  return text.split(/(`[^`]+`|\*\*[^*]+\*\*)/).map((piece) => {
    if (/^`.+`$/.test(piece)) return el("code", {}, piece.slice(1, -1));
    if (/^\*\*.+\*\*$/.test(piece)) return el("strong", {}, piece.slice(2, -2));
    return piece.replace(/\\([\\`*_[\]|~])/g, "$1").replaceAll("&lt;", "<").replaceAll("&gt;", ">").replaceAll("&amp;", "&");
  });
}
