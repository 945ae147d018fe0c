// Draws Ubongo: tiles with their six symbols, layouts, hands, and each round as a race.
import { formatSpan, group, label, picture, shape, shorten } from "./shapes.js";

const CELL = 20;
const CELLS_BY_TURN = [0, 1, 2, 3].map((turn) =>
  [0, 1, 2, 3, 4, 5].map((symbol) => {
    const x = symbol % 2, y = symbol >> 1;
    return [[x, y], [2 - y, x], [1 - x, 2 - y], [y, 1 - x]][turn];
  }));
// Each symbol has a shape of its own, so that nobody needs to tell colours apart.
const SYMBOLS = {
  A: (x, y) => shape("circle", { cx: x, cy: y, r: 6 }),
  B: (x, y) => shape("rect", { x: x - 5.5, y: y - 5.5, width: 11, height: 11 }),
  C: (x, y) => shape("path", { d: `M${x} ${y - 6.5}l6.8 12h-13.6z` }),
  D: (x, y) => shape("path", { d: `M${x} ${y - 7}l7 7-7 7-7-7z` }),
  E: (x, y) => shape("path", { d: `M${x - 2.3} ${y - 6.5}h4.6v4.2h4.2v4.6h-4.2v4.2h-4.6v-4.2h-4.2v-4.6h4.2z` }),
  F: (x, y) => shape("path", { d: `M${x - 5.5} ${y - 5.5}l11 11m0-11l-11 11`, class: "stroke" }),
  G: (x, y) => shape("circle", { cx: x, cy: y, r: 5, class: "stroke" }),
  H: (x, y) => shape("path", { d: `M${x - 6} ${y - 3.5}h12M${x - 6} ${y + 3.5}h12`, class: "stroke" }),
};

export const drawSymbol = (symbol, x, y) =>
  SYMBOLS[symbol] ? shape("g", { class: `symbol s${symbol}` }, SYMBOLS[symbol](x, y)) : label(x, y + 5, symbol, "letter");

export const cellsOf = ([, x, y, turn]) => CELLS_BY_TURN[turn].map(([dx, dy]) => [x + dx, y + dy]);

// A tile at its place: [card, x, y, turn] and its six symbols. `kind` is "wrong" for a tile that does not fit.
export function drawTile(placement, symbols, kind = "") {
  const cells = cellsOf(placement), [card, x, y, turn] = placement;
  const wide = turn % 2 ? 3 : 2, high = turn % 2 ? 2 : 3;
  return shape("g", { class: `tile ${kind}` }, shape("title", {}, `${card} ${symbols}`),
    shape("rect", { x: x * CELL + 1, y: y * CELL + 1, width: wide * CELL - 2, height: high * CELL - 2, rx: 4 }),
    cells.map(([column, row], place) => drawSymbol(symbols[place], column * CELL + CELL / 2, row * CELL + CELL / 2)));
}

// A layout: placements, and the symbols of each card. Cards in `wrong` have a broken frame.
export function drawLayout(layout, sides, title, wrong = []) {
  const cells = layout.flatMap(cellsOf), columns = cells.map(([x]) => x), rows = cells.map(([, y]) => y);
  const left = Math.min(...columns), top = Math.min(...rows);
  const width = (Math.max(...columns) - left + 1) * CELL, height = (Math.max(...rows) - top + 1) * CELL;
  const symbols = Object.fromEntries(sides), broken = new Set(wrong.flat());
  const tiles = layout.map((each) => drawTile(each, symbols[each[0]], broken.has(each[0]) ? "wrong" : ""));
  const room = Math.max(width + 8, 220);
  return picture(room, height + 8, title, group((room - width) / 2 - left * CELL, 4 - top * CELL, "layout", ...tiles));
}

export function drawTiles(sides, title, inRow = 9) {
  const tiles = sides.map(([card, symbols], place) =>
    group((place % inRow) * 46, Math.floor(place / inRow) * 66, "", drawTile([card, 0, 0, 0], symbols)));
  return picture(Math.min(inRow, sides.length) * 46, Math.ceil(sides.length / inRow) * 66, title, tiles);
}

const note = (text) => picture(220, 40, text, label(110, 25, text, "small"));

function drawSeat(frame, seat, name) {
  const { table } = frame, own = frame.own[seat], built = table.built && table.built[seat];
  if (built) {
    if (!built.layout.length) return note("nothing laid");
    const state = `${name}: ${built.layout.length} cards laid${built.called ? ", called" : ""}; ${built.fits ? "they fit" : "they do not fit"}`;
    return drawLayout(built.layout, built.sides, state, built.wrong);
  }
  if (own && own.layout.length) return drawLayout(own.layout, own.hand, `${name}: ${own.layout.length} cards laid`);
  if (own && own.hand.length) return drawTiles(own.hand, `${name} holds ${own.hand.map(([card]) => card).join(" ")}`, 5);
  return note(table.out.includes(seat) ? "out of this round" : `builds, ${table.laid[seat]} cards laid`);
}

// The hands of finished rounds, which the rules have opened: a row for each.
function drawOpened(hands, hasRounds) {
  const rows = hands.map(({ round, name, hand }, row) => group(0, row * 88, "",
    label(0, 14, hasRounds ? `${name}, round ${round}` : name, "name", "start"),
    hand.map(([card, symbols], place) => group(place * 46, 20, "", drawTile([card, 0, 0, 0], symbols)))));
  const told = hands.map(({ round, name, hand }) => `round ${round} ${name} ${hand.map(([card]) => card).join(" ")}`).join(", ");
  return picture(420, hands.length * 88, `Opened hands: ${told}`, rows);
}

// The race of the round so far: a bar for each seat, as long as it built.
function drawTable(frame, names, steps) {
  const { table } = frame, calls = new Map();
  for (const step of steps) for (const move of step.moves) if (move.move && move.move.call) calls.set(move.seat, move.charged_ms);
  const known = [...calls.values()].filter((ms) => ms !== null);
  const longest = Math.max(1, ...known, table.built && !known.length ? spanOf(steps) : 0);
  const rows = names.map((name, seat) => {
    const called = calls.has(seat), ms = calls.get(seat), y = seat * 24;
    const width = 180 * ((called && ms !== null ? ms : longest) / longest);
    const right = table.built ? table.built[seat].fits : !table.out.includes(seat);
    const end = called ? `${right ? "Ubongo!" : "wrong call"}${ms === null ? "" : ` ${formatSpan(ms)}`}` : table.built ? `${table.laid[seat]} laid` : "builds";
    return [
      shape("title", {}, name), label(92, y + 17, shorten(name, 13), "name", "end"),
      shape("rect", { x: 100, y: y + 5, width: Math.max(2, width), height: 14, rx: 3, class: called ? (right ? "bar called" : "bar wrong") : "bar" }),
      label(288, y + 17, end, "name", "start"),
    ];
  });
  const told = names.map((name, seat) => `${name} ${calls.has(seat) ? "called" : "built"}`).join(", ");
  return picture(440, names.length * 24 + 4, `Race: ${told}`, rows.map((row) => shape("g", {}, row)));
}

const spanOf = (steps) => (steps.length > 1 && steps[0].at_ms !== null ? steps.at(-1).at_ms - steps[0].at_ms : 0);
export const UBONGO = {
  drawTable,
  drawSeat,
  drawOpened,
  describeFacts: ({ table }) => `Round ${table.round} of ${table.rounds}${table.built ? ", over" : ""}`,
};
