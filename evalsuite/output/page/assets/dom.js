// Make all elements of this page. Text becomes a text node, never markup, so a model's text cannot change the page.

const SVG = "http://www.w3.org/2000/svg";
const OWN_PROPERTIES = new Set(["value", "checked", "disabled", "open", "hidden", "selected", "tabIndex"]);

/** Makes an element; children are elements, text or numbers; null and false are ignored. */
function el(tag, attributes = {}, ...children) {
  return filled(document.createElement(tag), attributes, children);
}

/** Makes an element of an SVG picture. */
function svg(tag, attributes = {}, ...children) {
  return filled(document.createElementNS(SVG, tag), attributes, children);
}

function filled(element, attributes, children) {
  for (const [name, value] of Object.entries(attributes)) {
    if (value === null || value === undefined || value === false) continue;
    if (name.startsWith("on")) element.addEventListener(name.slice(2), value);
    else if (name === "style") for (const [key, setting] of Object.entries(value)) element.style.setProperty(key, setting);
    else if (OWN_PROPERTIES.has(name)) element[name] = value;
    else element.setAttribute(name, value === true ? "" : value);
  }
  append(element, children);
  return element;
}

function append(element, children) {
  for (const child of children.flat(Infinity)) {
    if (child === null || child === undefined || child === false || child === "") continue;
    element.append(child instanceof Node ? child : document.createTextNode(String(child)));
  }
}

function replaceChildren(element, ...children) {
  element.replaceChildren();
  append(element, children);
}

/** Announces a text to screen readers. */
function announce(text) {
  document.getElementById("live").textContent = text;
}

/** Makes a button that copies a text. */
function copyButton(label, text) {
  const button = el("button", { type: "button", class: "quiet", onclick: copy }, label);
  async function copy() {
    const done = await copyText(typeof text === "function" ? text() : text);
    button.textContent = done ? "Copied" : "Select and copy by hand";
    setTimeout(() => (button.textContent = label), 1500);
  }
  return button;
}

async function copyText(text) {
  try {
    await navigator.clipboard.writeText(text);
    return true;
  } catch {
    // A page that was opened from a disk may lack access to the clipboard.
    const area = el("textarea", { class: "visually-hidden" });
    area.value = text;
    document.body.append(area);
    area.select();
    const done = document.execCommand("copy");
    area.remove();
    return done;
  }
}
