// Print numbers, which are rounded only here.

const ABSENT = "\u2013"; // a dash: not measured
const MINUS = "\u2212";

function fixed(value, digits = 3) {
  if (value === null || value === undefined || Number.isNaN(value)) return ABSENT;
  const text = Math.abs(value).toFixed(digits);
  return value < 0 && /[1-9]/.test(text) ? MINUS + text : text;
}

function signed(value, digits = 3) {
  const text = fixed(value, digits);
  return value > 0 && /[1-9]/.test(text) ? `+${text}` : text;
}

function withInterval(estimate, digits = 3) {
  if (!estimate) return ABSENT;
  const value = fixed(estimate.value, digits);
  if (estimate.low === null || estimate.low === undefined) return value;
  return `${value} [${fixed(estimate.low, digits)}, ${fixed(estimate.high, digits)}]`;
}

function counted(count, noun, many = `${noun}s`) {
  return `${whole(count)} ${count === 1 ? noun : many}`;
}

function whole(value) {
  return Math.round(value ?? 0).toLocaleString("en-US");
}

function probability(p) {
  if (p === null || p === undefined) return ABSENT;
  return p < 0.0001 ? "<0.0001" : p.toFixed(4);
}

function duration(seconds) {
  if (seconds === null || seconds === undefined) return ABSENT;
  if (seconds < 60) return `${seconds.toFixed(1)} s`;
  const minutes = Math.floor(seconds / 60);
  if (minutes < 60) return `${minutes} min ${Math.round(seconds % 60)} s`;
  return `${Math.floor(minutes / 60)} h ${minutes % 60} min`;
}

function money(dollars) {
  if (!dollars) return ABSENT;
  return dollars < 0.01 ? `$${dollars.toFixed(5)}` : `$${dollars.toFixed(2)}`;
}

/** Prints a time in the reader's time zone. */
function moment(text) {
  const date = new Date(text);
  if (!text || Number.isNaN(date.getTime())) return text || ABSENT;
  return date.toLocaleString(undefined, { dateStyle: "medium", timeStyle: "short" });
}
