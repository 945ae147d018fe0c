// Draws games from outside: zones of cards, counters, boards and texts, as the game or its views say.
import { group, label, picture, shape, shorten } from "./shapes.js";

const TABLE_WIDTH = 440, LEAST_TABLE = 340, GAP = 14, CARD_HEIGHT = 44, CELL = 32;
// On a small screen two seats beside one another must be readable.
const seatWidth = (seats) => (seats > 2 && matchMedia("(max-width: 44rem)").matches ? 240 : 324);
const LETTER = 7.5; // the mean width of a letter of 14 pixels

const cardWidth = ({ text = "" }) => Math.max(30, text.length * 9 + 8);

function drawCard(card, x) {
  const width = cardWidth(card), base = shape("rect", { width, height: CARD_HEIGHT, rx: 4 });
  if (card.face === "down") return group(x, 0, "card back", base, shape("path", { d: "M8 8L22 36M22 8L8 36", class: "cross" }));
  return group(x, 0, `piece k-${card.colour ?? "black"}${card.marked ? " marked" : ""}`, base, label(width / 2, 28, card.text, "value"));
}

// Each of these returns a block: how wide and high it is, and its shapes.
function layZone({ zone, cards, layout }, room) {
  const down = cards.filter(({ face }) => face === "down").length;
  const overlap = layout === "stack" || (down > 4 && down === cards.length) ? 12 : 0;
  const rows = [[]];
  let x = 0, wide = zone.length * LETTER;
  for (const card of cards) {
    const width = cardWidth(card);
    if (x && x + width > room) { rows.push([]); x = 0; }
    rows.at(-1).push(drawCard(card, x));
    wide = Math.max(wide, Math.min(room, x + width));
    x += overlap || width + 2;
  }
  return { wide, high: 18 + rows.length * (CARD_HEIGHT + 4),
    shapes: [label(0, 13, shorten(zone, 40), "small", "start"), ...rows.map((row, place) => group(0, 18 + place * (CARD_HEIGHT + 4), "", row))] };
}

function layCounter({ counter, value }) {
  const name = shorten(counter, 30);
  return { wide: Math.max(name.length * 6.2, String(value).length * 11), high: 40,
    shapes: [label(0, 13, name, "small", "start"), label(0, 34, value, "value", "start")] };
}

function layBoard({ board, rows, columns, pieces }, room) {
  const longest = Math.max(1, ...pieces.map(({ text }) => text.length));
  const cell = Math.max(CELL, longest * 9 + 6), scale = Math.min(1, room / (columns * cell));
  const lines = Array.from({ length: rows * columns }, (_, place) => shape("rect", {
    x: (place % columns) * cell, y: Math.floor(place / columns) * CELL, width: cell, height: CELL, class: "plot" }));
  const drawn = pieces.map(({ row, column, text, colour, owner }) => group(column * cell, row * CELL, `on k-${colour ?? "black"}${owner === null || owner === undefined ? "" : ` s${owner % 8}`}`,
    shape("rect", { x: 2, y: 2, width: cell - 4, height: CELL - 4, rx: 4 }), label(cell / 2, 22, text, "letter")));
  return { wide: Math.max(columns * cell * scale, board.length * LETTER), high: 18 + rows * CELL * scale + 4,
    shapes: [label(0, 13, shorten(board, 40), "small", "start"), shape("g", { transform: `translate(0 18) scale(${scale.toFixed(3)})` }, lines, drawn)] };
}

function layText({ text }, room) {
  const most = Math.floor(room / LETTER), lines = [""];
  for (const word of text.split(" ")) {
    if (lines.at(-1) && lines.at(-1).length + word.length >= most) lines.push("");
    lines[lines.length - 1] += `${lines.at(-1) ? " " : ""}${shorten(word, most)}`;
  }
  return { wide: room, high: lines.length * 18 + 2, shapes: lines.map((line, place) => label(0, 14 + place * 18, line, "name", "start")) };
}

const layItem = (item, room) =>
  "zone" in item ? layZone(item, room) : "counter" in item ? layCounter(item) : "board" in item ? layBoard(item, room) : layText(item, room);

function describeItem(item) {
  if ("zone" in item) return `${item.zone}: ${item.cards.map(({ face, text, marked }) => (face === "down" ? "face down" : marked ? `${text} (marked)` : text)).join(" ") || "none"}`;
  if ("counter" in item) return `${item.counter}: ${item.value}`;
  if ("board" in item) return `${item.board}: ${item.pieces.map(({ row, column, text }) => `${text} in row ${row + 1}, column ${column + 1}`).join(", ") || "empty"}`;
  return item.text;
}

// The blocks beside one another, as many as there is room for.
function drawItems(items, width, title, least = width) {
  let x = 0, y = 0, high = 0, wide = least;
  const drawn = items.map((item) => {
    const block = layItem(item, width - 8);
    if (x && x + block.wide > width - 8) { x = 0; y += high + 6; high = 0; }
    const placed = group(x + 4, y, "", block.shapes);
    wide = Math.max(wide, Math.min(width, x + block.wide + 8));
    x += block.wide + GAP;
    high = Math.max(high, block.high);
    return placed;
  });
  return picture(Math.ceil(wide), Math.max(20, Math.ceil(y + high)), `${title}${items.map(describeItem).join("; ") || "nothing"}`, drawn);
}

const isOpen = ({ owner }) => owner === null || owner === undefined;
// The first text of the table stands over it.
const findFact = ({ table }) => table.drawing.find((item) => "text" in item && isOpen(item));

export const HOSTED = {
  drawTable: (frame) => drawItems(frame.table.drawing.filter((item) => isOpen(item) && item !== findFact(frame)), TABLE_WIDTH, "Table: ", LEAST_TABLE),
  drawSeat: (frame, seat, name) =>
    drawItems((frame.own[seat] ?? frame.table).drawing.filter(({ owner }) => owner === seat), seatWidth(frame.left.length), `${name}. `),
  drawOpened: () => picture(10, 10, ""),
  describeFacts: (frame) => findFact(frame)?.text ?? (frame.kind === "finished" ? "The end" : frame.kind === "dealt" ? "The deal" : "The table"),
};
