// Draws UGO!: cards, kingdoms with their farmers, and the trick on the table.
import { group, label, picture, shape, shorten } from "./shapes.js";

const CARD_WIDTH = 30, CARD_HEIGHT = 44, STEP = 31.5;
const FARMER_PLACES = [0, 0, 2, 3, 4];
const LANDS = { R: "hills", B: "lakes", G: "meadows", Y: "fields", K: "mountains" };
const LAND_PATHS = {
  R: "M0 9q3.5-8 7 0M5 9q3.5-8 7 0",
  B: "M0 4q2-3 4 0t4 0t4 0M0 8q2-3 4 0t4 0t4 0",
  G: "M1 9V4M4 9V2M7 9V4M10 9V2",
  Y: "M0 2h12M0 5.5h12M0 9h12",
  K: "M0 9L4 2l3 5 2-3 3 5z",
};

export const nameUgoCard = (card) => `${card} (${LANDS[card[0]]})`;

export function drawUgoCard(card, x, y, kind = "") {
  const base = shape("rect", { width: CARD_WIDTH, height: CARD_HEIGHT, rx: 4 });
  if (!card) return group(x, y, `card back ${kind}`, base, shape("path", { d: "M8 8L22 36M22 8L8 36", class: "cross" }));
  return group(
    x, y, `card c${card[0]} ${kind}`, base,
    label(CARD_WIDTH / 2, 21, card[1], "value"), label(9, 38, card[0], "land"),
    shape("path", { d: LAND_PATHS[card[0]], transform: "translate(15 29)", class: "symbol" }),
  );
}

export function drawUgoHand(cards, x, y) {
  return cards.map((card, place) => drawUgoCard(card, x + place * STEP, y));
}

function drawStack(stack, x, y) {
  const gap = Math.min(15, 56 / Math.max(1, stack.length - 1));
  return stack.map((card, place) => drawUgoCard(card, x, y + place * gap, place < stack.length - 1 ? "under" : "top"));
}

// A kingdom: five sections from A to E, the places for farmers below them, and their scores if the round is over.
export function drawUgoKingdom(kingdom, x, y, scores = null) {
  let farmers = kingdom.farmers;
  const drawn = kingdom.sections.map((stack, section) => {
    const places = Array.from({ length: FARMER_PLACES[section] }, (_, place) =>
      shape("circle", { cx: 9 + place * 12.5, cy: 127, r: 4.8, class: farmers-- > 0 ? "farmer" : "place" }));
    const score = scores ? [label(27, 152, scores[section] > 0 ? `+${scores[section]}` : scores[section], scores[section] < 0 ? "score loss" : "score")] : [];
    return group(section * 63.5, 0, "section",
      shape("rect", { width: 56, height: 116, rx: 5, class: "plot" }), label(11, 16, "ABCDE"[section], "small"),
      ...drawStack(stack, 20, 8), ...places, ...score);
  });
  return group(x, y, "kingdom", ...drawn);
}

const describeUgoKingdom = (kingdom) =>
  `${kingdom.sections.map((stack, section) => `${"ABCDE"[section]} ${stack.length ? stack.join(" ") : "empty"}`).join(", ")}; ${kingdom.farmers} farmers`;

function drawSeat(frame, seat, name) {
  const { table } = frame, own = frame.own[seat];
  const hand = own ? own.hand : Array(table.hand_sizes[seat]).fill(null);
  const held = own ? hand.join(" ") || "empty" : `${hand.length} cards`;
  const kingdom = table.kingdoms[seat];
  const title = `${name}. Hand: ${held}. Kingdom: ${describeUgoKingdom(kingdom)}`;
  if (table.scores) return picture(324, 164, title, drawUgoKingdom(kingdom, 5, 4, table.scores[seat]));
  return picture(324, 196, title, drawUgoHand(hand, 5, 4), drawUgoKingdom(kingdom, 5, 58));
}

// The hands of finished rounds, which the rules have opened: a row for each.
function drawOpened(hands) {
  const rows = hands.map(({ name, hand }, row) => [
    shape("title", {}, name), label(0, row * 52 + 30, shorten(name, 13), "name", "start"), ...drawUgoHand(hand.map(([card]) => card), 100, row * 52 + 4)]);
  const told = hands.map(({ name, hand }) => `${name} ${hand.map(([card]) => card).join(" ")}`).join(", ");
  return picture(420, hands.length * 52, `Opened hands: ${told}`, rows.map((row) => shape("g", {}, row)));
}

function drawTable(frame, names) {
  const { table } = frame, seats = names.length;
  const trick = table.trick.length ? { leader: table.leader, cards: table.trick } : table.last || { leader: table.leader, cards: [] };
  const played = trick.cards.map((card, place) => `${names[(trick.leader + place) % seats]} ${nameUgoCard(card)}`);
  const drawn = names.map((name, seat) => {
    const card = trick.cards[(seat - trick.leader + seats) % seats], isWinner = trick.winner === seat;
    const role = [seat === trick.leader ? "led" : "", isWinner ? "won" : ""].filter(Boolean).join(", ");
    return group(seat * 88, 0, "",
      shape("title", {}, name), label(44, 14, shorten(name, 10), frame.asked.includes(seat) ? "name asked" : "name"),
      shape("rect", { x: 27, y: 22, width: 34, height: 48, rx: 6, class: isWinner ? "slot won" : "slot" }),
      card ? [drawUgoCard(card, 29, 24)] : [], label(44, 86, role, "small"));
  });
  return picture(seats * 88, 92, played.length ? `Trick: ${played.join(", ")}` : "No card is on the table", drawn);
}

export const UGO = {
  drawTable,
  drawSeat,
  drawOpened,
  describeFacts: ({ table }) =>
    `Round ${table.round} of ${table.rounds}, trick ${Math.max(1, table.tricks + (table.trick.length ? 1 : 0))}, ${table.supply} farmers left`,
};
