// A drawing as plain values: a name, attributes, and what is inside. Texts stay texts, whatever a bot is called.
const SVG_NAMESPACE = "http://www.w3.org/2000/svg";

export const shape = (name, attributes = {}, ...inside) => ({ name, attributes, inside: inside.flat() });

export const label = (x, y, text, kind = "", anchor = "middle") =>
  shape("text", { x, y, class: kind, "text-anchor": anchor }, String(text));

export const group = (x, y, kind, ...inside) => shape("g", { transform: `translate(${x} ${y})`, class: kind }, ...inside);

// A whole picture. Screen readers read its title.
export const picture = (width, height, title, ...inside) =>
  shape("svg", { viewBox: `0 0 ${width} ${height}`, role: "img", "aria-label": title, class: "drawn" }, ...inside);

export const shorten = (text, most) => (text.length > most ? `${text.slice(0, most - 1)}…` : text);

// The drawing as an element of the page.
export function toElement(drawn) {
  if (typeof drawn === "string") return document.createTextNode(drawn);
  const element = document.createElementNS(SVG_NAMESPACE, drawn.name);
  for (const [key, value] of Object.entries(drawn.attributes)) if (value !== "") element.setAttribute(key, value);
  element.append(...drawn.inside.map(toElement));
  return element;
}

const shownIn = new WeakMap();

// Draw in this element. Only what differs from its last drawing is changed.
export function drawIn(element, drawn) {
  const before = shownIn.get(element);
  shownIn.set(element, drawn);
  if (before) updateNode(element.firstChild, before, drawn);
  else element.replaceChildren(toElement(drawn));
}

function updateNode(node, before, after) {
  if (typeof before === "string" && typeof after === "string") {
    if (before !== after) node.data = after;
  } else if (before.name !== after.name) node.replaceWith(toElement(after));
  else {
    updateAttributes(node, before.attributes, after.attributes);
    updateInside(node, before.inside, after.inside);
  }
}

function updateAttributes(element, before, after) {
  for (const key of Object.keys(before)) if ((after[key] ?? "") === "") element.removeAttribute(key);
  for (const [key, value] of Object.entries(after)) if (value !== "" && value !== before[key]) element.setAttribute(key, value);
}

function updateInside(element, before, after) {
  const nodes = [...element.childNodes];
  nodes.slice(after.length).forEach((node) => node.remove());
  nodes.slice(0, after.length).forEach((node, place) => updateNode(node, before[place], after[place]));
  element.append(...after.slice(before.length).map(toElement));
}

const ESCAPES = { "&": "&amp;", "<": "&lt;", ">": "&gt;", '"': "&quot;" };
const escapeText = (text) => String(text).replace(/[&<>"]/g, (letter) => ESCAPES[letter]);

// The drawing as the text of a file.
export function toMarkup(drawn) {
  if (typeof drawn === "string") return escapeText(drawn);
  const attributes = Object.entries(drawn.attributes).filter(([, value]) => value !== "");
  const written = attributes.map(([key, value]) => ` ${key}="${escapeText(value)}"`).join("");
  return `<${drawn.name}${written}>${drawn.inside.map(toMarkup).join("")}</${drawn.name}>`;
}

// A span of milliseconds for people.
export const formatSpan = (ms) => (ms < 1000 ? `${ms} ms` : `${(ms / 1000).toFixed(1)} s`);
