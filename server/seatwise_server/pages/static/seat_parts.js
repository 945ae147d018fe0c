// Small helpers for the pages of seats.
export function make(name, attributes = {}, ...inside) {
  const element = document.createElement(name);
  for (const [key, value] of Object.entries(attributes)) if (value !== false) element.setAttribute(key, value);
  element.append(...inside);
  return element;
}

export function makeButton(text, onClick, attributes = {}) {
  const button = make("button", { type: "button", ...attributes }, text);
  button.addEventListener("click", onClick);
  return button;
}

export const countOf = (number, what) => `${number} ${what}${number === 1 ? "" : "s"}`;

// Totals of all finished rounds, by seat.
export const totalsOf = (points, seats) => Array.from({ length: seats }, (_, seat) => points.reduce((sum, round) => sum + round.points[seat], 0));

// A board for each seat: the person's own first, then the others as they follow it.
export const boardsFromOwn = ({ seat: own, names }, drawBoard) => names.map((_, place) => (own + place) % names.length).map((seat) => drawBoard(names[seat], seat));

// A heading with a name and what is said of it.
export const head = (name, ...said) => make("h3", {}, make("span", { class: "who" }, name), ...said.filter(Boolean).map((each) => make("span", { class: "said" }, each)));
