// Show a sheet of cases to label by keyboard. Labels stay in this browser until they are saved as CSV.

const sheet = JSON.parse(document.getElementById("overview").textContent);
const labels = new Map(Object.entries(readLabels()));
let at = Math.max(0, sheet.cases.findIndex((item) => !labels.has(item.case)));

function readLabels() {
  try {
    return JSON.parse(localStorage.getItem(sheet.key)) || {};
  } catch {
    return {};
  }
}

function setLabel(label) {
  const { case: name } = sheet.cases[at];
  if (label === null) labels.delete(name);
  else labels.set(name, label);
  try {
    localStorage.setItem(sheet.key, JSON.stringify(Object.fromEntries(labels)));
  } catch {
    // Without storage, the labels exist only in this page.
  }
  if (label !== null && at < sheet.cases.length - 1) at += 1;
  show();
}

function move(steps) {
  at = Math.min(sheet.cases.length - 1, Math.max(0, at + steps));
  show();
}

function asCsv() {
  const quote = (value) => `"${String(value).replaceAll('"', '""')}"`;
  const columns = sheet.weighted ? ["case", "label", "content", "weight"] : ["case", "label", "content"];
  const rows = sheet.cases.map((item) => [item.case, labels.get(item.case) ?? "", item.content, item.weight]);
  return [columns, ...rows].map((row) => row.slice(0, columns.length).map(quote).join(",")).join("\r\n") + "\r\n";
}

function save() {
  const url = URL.createObjectURL(new Blob([asCsv()], { type: "text/csv" }));
  el("a", { href: url, download: sheet.file }).click();
  setTimeout(() => URL.revokeObjectURL(url), 1000);
  announce(`${labels.size} labels saved to ${sheet.file}`);
}

function keyHelp() {
  const help = ([key, meaning]) => el("span", {}, el("kbd", {}, key), ` ${meaning}   `);
  const { range, choices } = sheet.cases[at];
  const field = range && el("label", {}, `number from ${range[0]} to ${range[1]}, then Enter `, el("input", {
    id: "number", type: "number", step: "any", min: range[0], max: range[1], onchange: (event) => {
      if (event.target.value !== "" && event.target.checkValidity()) setLabel(event.target.value);
    },
  }), "  ");
  const moves = [["← →", "other cases"], ["Backspace", "no label"], ["s", "save CSV"]];
  return el("p", { class: "keys" }, field, choices.map(help), moves.map(help));
}

function show() {
  const item = sheet.cases[at];
  const label = labels.get(item.case);
  const chosen = item.choices.find(([, , value]) => value === label);
  replaceChildren(
    document.getElementById("masthead"),
    el("span", { class: "brand" }, `Case ${at + 1} of ${sheet.cases.length}`, el("span", {}, `${labels.size} labelled`)),
    el("strong", { id: "label" }, label === undefined ? "no label" : `label: ${(chosen && chosen[1]) || label}`),
  );
  replaceChildren(
    document.getElementById("main-content"),
    el("article", { class: "sheet" },
      el("p", { class: "question" }, item.question),
      keyHelp(),
      item.sections.map(([name, text]) => el("section", {}, el("h2", {}, name), el("pre", {}, text))),
      item.pictures.map((source) => el("img", { src: source, alt: "picture in the question" }))),
  );
  window.scrollTo(0, 0);
  announce(`case ${at + 1}, ${label === undefined ? "no label" : `label ${label}`}`);
}

document.addEventListener("keydown", (event) => {
  if (event.ctrlKey || event.metaKey || event.altKey) return;
  const typing = event.target.id === "number";
  const choice = sheet.cases[at].choices.find(([key]) => key === event.key.toLowerCase());
  if (choice && !typing) setLabel(choice[2]);
  else if (event.key === "ArrowLeft" && !typing) move(-1);
  else if (event.key === "ArrowRight" && !typing) move(1);
  else if (event.key === "Backspace" && !typing) setLabel(null);
  else if (event.key === "s") save();
  else if (sheet.cases[at].range && /^[\d.-]$/.test(event.key) && !typing) return void document.getElementById("number").focus();
  else return;
  event.preventDefault();
});
show();
