// Select the view, update the address and handle keys.

const OVERVIEW = JSON.parse(document.getElementById("overview").textContent);
const VIEWS = OVERVIEW.kind === "index" ? ["overview"] : ["overview", "cases", "report"];
const PRIMARY = new Map(OVERVIEW.benchmarks.map((benchmark) => [benchmark.name, benchmark.metric]));
const LOWER_IS_BETTER = new Set(OVERVIEW.lower_is_better);

let state = readAddress(location.hash);

const runsRead = new Map();

/** Returns the cases of a run, which are read on first use. */
function casesOf(number) {
  if (!runsRead.has(number)) runsRead.set(number, readCases(number));
  return runsRead.get(number);
}

function subjectNumber() {
  return state.subject === "" ? OVERVIEW.subject : Number(state.subject);
}

function againstNumber() {
  return state.against === "" ? OVERVIEW.against : Number(state.against);
}

/** Changes the state; `step` adds an entry to the browser's history. */
function change(changes, { step = false } = {}) {
  state = { ...state, ...changes };
  history[step ? "pushState" : "replaceState"](null, "", writeAddress(state));
  return show();
}

async function show() {
  const main = document.getElementById("main-content");
  showMasthead();
  document.body.dataset.view = state.view;
  try {
    if (OVERVIEW.kind === "index") showIndex(main);
    else if (state.view === "overview") await showOverview(main);
    else if (state.view === "report") showReport(main);
    else await showCases(main);
  } catch (error) {
    replaceChildren(main, el("div", { class: "trouble", role: "alert" }, el("h1", {}, "The cases cannot be shown"), el("p", {}, error.message)));
  }
}

function showMasthead() {
  const titles = { overview: "Overview", cases: "Cases", report: "Report" };
  const name = OVERVIEW.kind === "run" ? OVERVIEW.runs[0].name : counted(OVERVIEW.runs.length, "run");
  replaceChildren(document.getElementById("masthead"),
    el("span", { class: "brand" }, "evalsuite", el("span", {}, name)),
    el("nav", { "aria-label": "Views" }, VIEWS.map((view) =>
      el("a", { href: view === state.view ? location.hash || "#overview" : address(view), "aria-current": view === state.view ? "page" : null }, titles[view]))));
}

function typing(event) {
  return event.target.closest("input, select, textarea") || event.ctrlKey || event.metaKey || event.altKey;
}

document.addEventListener("keydown", (event) => {
  if (event.key === "Escape" && event.target.matches("input")) event.target.blur();
  if (typing(event)) return;
  if (event.key === "/" && VIEWS.includes("cases")) {
    event.preventDefault();
    openSearch();
  } else if (state.view === "cases") listKey(event);
});

async function openSearch() {
  if (state.view !== "cases") await change({ ...DEFAULTS, view: "cases" }, { step: true });
  document.querySelector(".filters")?.setAttribute("open", "");
  document.getElementById("search")?.focus();
}

window.addEventListener("hashchange", () => {
  state = readAddress(location.hash);
  show();
});
window.addEventListener("popstate", () => {
  state = readAddress(location.hash);
  show();
});

/** Reloads the page of a run in progress whenever it has been rewritten, and once more at the end. */
async function followRun() {
  const script = new Promise((resolve) => setTimeout(resolve, 2000)).then(() => packedChunk("live", `?${Date.now()}`));
  const cases = await script.catch(() => "ended");
  if (cases === String(OVERVIEW.live)) return followRun();
  sessionStorage.setItem("scrolled", String(document.getElementById("rows")?.scrollTop ?? window.scrollY));
  return location.reload();
}

function scrollBack() {
  const scrolled = Number(sessionStorage.getItem("scrolled"));
  sessionStorage.removeItem("scrolled");
  const rows = document.getElementById("rows");
  if (rows) rows.scrollTop = scrolled;
  else window.scrollTo(0, scrolled);
}

show().then(() => {
  if (sessionStorage.getItem("scrolled")) scrollBack();
  if (OVERVIEW.live !== undefined && OVERVIEW.live !== null) followRun();
});
