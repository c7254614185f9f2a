// Show the index of runs: each run with its verdict, and the metrics over time.

function showIndex(main) {
  const rows = [...OVERVIEW.runs].reverse();
  const metrics = [...new Set(rows.flatMap((run) => Object.keys(run.metrics ?? {})))];
  replaceChildren(main, el("div", { class: "overview" },
    el("section", { class: "hero" }, el("div", {}, el("h1", {}, counted(rows.length, "run")))),
    part("Newest first", scrolled(el("table", { class: "figures" },
      el("thead", {}, el("tr", {}, ["", "run", "model", "started", "cases", ...metrics, "cost", "wall time"].map((title, place) => el("th", { scope: "col", class: place > 3 ? "number" : null }, title)))),
      el("tbody", {}, rows.map((run) => indexRow(run, metrics))))), "runs"),
    OVERVIEW.trends.length ? part("Over time", OVERVIEW.trends.map(chartBlock), "trends") : null));
}

function indexRow(run, metrics) {
  const tone = run.status === 0 ? "good" : run.status === null || run.status === undefined || run.status === 12 ? "open" : "bad";
  const mark = { good: "\u2713", open: "\u2026", bad: "\u2717" }[tone];
  const cases = Object.values(run.counts ?? {}).reduce((sum, count) => sum + count, 0);
  const name = run.page ? el("a", { href: `${encodeURIComponent(run.name)}/report.html` }, run.name) : run.name;
  return el("tr", {}, el("td", {}, el("span", { class: tone, title: run.verdict }, mark)),
    el("th", { scope: "row" }, name, el("div", { class: "soft" }, run.verdict)), el("td", {}, run.model ?? ABSENT), el("td", { class: "moment" }, moment(run.started)),
    el("td", { class: "number" }, whole(cases)), metrics.map((metric) => el("td", { class: "number" }, withInterval(run.metrics?.[metric]))),
    el("td", { class: "number" }, money(run.usage?.cost)), el("td", { class: "number" }, duration(run.seconds)));
}
