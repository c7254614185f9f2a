// Show tables that a model wrote in Markdown, HTML or LaTeX. Their cells are read as text, and a new table is made
// from the text, in a frame that may neither run nor load anything.

/** Finds the tables of a text, each as `{format, rows: [[{text, span, depth, head}]]}`. */
function findTables(text) {
  if (/<table[\s>]/i.test(text)) return htmlTables(text);
  if (/\\begin\{(?:tabular|array|longtable)/.test(text)) return latexTables(text);
  return markdownTables(text);
}

function htmlTables(text) {
  // A parsed document loads and runs nothing; markup outside of tables is removed in addition.
  const parsed = new DOMParser().parseFromString(tablesAlone(text), "text/html");
  return [...parsed.querySelectorAll("table")].map((table) => ({
    format: "HTML",
    rows: [...table.rows].map((row) =>
      [...row.cells].map((cell) => ({
        text: cell.textContent.trim(),
        span: bounded(cell.colSpan),
        depth: bounded(cell.rowSpan),
        head: cell.tagName === "TH",
      })),
    ),
  }));
}

const MARKUP = /<!--[\s\S]*?(?:-->|$)|<(script|style)\b[\s\S]*?(?:<\/\1\s*>|$)|<(\/?)([a-z][\w-]*)((?:"[^"]*"|'[^']*'|[^'">])*)>/gi;
const KEPT = new Set(["table", "caption", "thead", "tbody", "tfoot", "tr", "td", "th", "br"]);

/** Keeps only the markup of tables, and only spans among its attributes. */
function tablesAlone(text) {
  return text.replace(MARKUP, (whole, hidden, close, name, attributes) => {
    const tag = name?.toLowerCase();
    if (!KEPT.has(tag)) return "";
    if (close) return `</${tag}>`;
    const spans = [...attributes.matchAll(/\b(colspan|rowspan)\s*=\s*["']?(\d{1,3})/gi)];
    return `<${tag}${spans.map(([, span, count]) => ` ${span.toLowerCase()}="${count}"`).join("")}>`;
  });
}

function bounded(span) {
  return Math.min(100, Math.max(1, span || 1));
}

function markdownTables(text) {
  const tables = [];
  let block = [];
  for (const line of [...text.split("\n"), ""]) {
    if (line.includes("|")) block.push(line);
    else {
      const rule = block.findIndex((line) => /^\s*\|?\s*:?-+:?\s*(\|\s*:?-+:?\s*)*\|?\s*$/.test(line));
      if (rule > 0) tables.push({ format: "Markdown", rows: markdownRows(block.slice(rule - 1)) });
      block = [];
    }
  }
  return tables;
}

function markdownRows([head, , ...body]) {
  return [head, ...body].map((line, place) =>
    line.trim().replace(/^\||(?<!\\)\|$/g, "").split(/(?<!\\)\|/)
      .map((text) => ({ text: text.trim().replaceAll("\\|", "|"), span: 1, depth: 1, head: place === 0 })),
  );
}

function latexTables(text) {
  const pattern = /\\begin\{(tabular\*?|array|longtable|tabularx)\}([\s\S]*?)(?:\\end\{\1\}|$)/g;
  return [...text.matchAll(pattern)].map((match) => ({ format: "LaTeX", rows: latexRows(match[2]) }));
}

function latexRows(body) {
  const content = body.replace(/^(?:\s*(?:\[[^\]]*\]|\{(?:[^{}]|\{[^{}]*\})*\}))+/, "");
  return content
    .split(/\\\\(?:\[[^\]]*\])?|\\tabularnewline/)
    .map((line) => line.replace(/\\(?:hline|toprule|midrule|bottomrule|cline\{[^}]*\}|cmidrule(?:\([^)]*\))?\{[^}]*\})/g, ""))
    .filter((line) => line.trim())
    .map((line, place) => line.split(/(?<!\\)&/).map((cell) => latexCell(cell, place === 0)));
}

function latexCell(source, head) {
  const wide = /^\s*\\multicolumn\{(\d+)\}\{[^}]*\}\{([\s\S]*)\}\s*$/.exec(source);
  const text = (wide ? wide[2] : source)
    .replace(/\\(?:textbf|textit|emph|text|mathrm|mathbf|underline)\{([^{}]*)\}/g, "$1")
    .replace(/\\([&%$#_{}])/g, "$1")
    .replace(/\$([^$]*)\$/g, "$1")
    .trim();
  return { text, span: wide ? bounded(Number(wide[1])) : 1, depth: 1, head };
}

/** Puts a table into a frame that may neither run nor load anything. */
function tableFrame(table, label) {
  const lines = table.rows.map((row) => `<tr>${row.map(cellMarkup).join("")}</tr>`);
  const frame = el("iframe", {
    class: "rendered", sandbox: "", title: `${label} as a table`, tabindex: "0",
    srcdoc: `<!doctype html><meta name="color-scheme" content="light dark"><style>${OVERVIEW.frame_style}</style>` +
      `<table>${lines.join("")}</table>`,
  });
  frame.style.height = `${Math.min(480, 24 + 30 * table.rows.length)}px`;
  return frame;
}

function cellMarkup({ text, span, depth, head }) {
  const tag = head ? "th" : "td";
  return `<${tag} colspan="${span}" rowspan="${depth}">${escapeMarkup(text)}</${tag}>`;
}

function escapeMarkup(text) {
  return text.replace(/[&<>"']/g, (mark) => `&#${mark.charCodeAt(0)};`);
}
