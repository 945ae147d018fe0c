// A card game in the shape of UGO!: four seats, hidden hands, four rounds of tricks. It has 208 moves, and UGO! about 200.

export const SEATS = 4;
export const ROUNDS = 4;
const HAND = 13;
const DECK = Array.from({ length: SEATS * HAND }, (_, card) => card);

const suitOf = (card) => Math.floor(card / HAND);

/** A match before its first move; `shuffle` returns a shuffled copy. */
export function newMatch(shuffle) {
  const match = { round: 0, turn: 0, scores: [0, 0, 0, 0], trick: [], won: [], hands: [] };
  deal(match, shuffle);
  return match;
}

function deal(match, shuffle) {
  const deck = shuffle(DECK);
  match.hands = [0, 1, 2, 3].map((seat) => deck.slice(seat * HAND, (seat + 1) * HAND));
  match.won = [[], [], [], []];
}

/** The cards that the seat may play: of the suit that was led, if it has any. */
export function legalCards(match, seat) {
  if (seat !== match.turn || isOver(match)) return [];
  const hand = match.hands[seat];
  if (!match.trick.length) return hand;
  const following = hand.filter((card) => suitOf(card) === suitOf(match.trick[0]));
  return following.length ? following : hand;
}

/** Whether the move was legal, and is done. */
export function play(match, seat, card, shuffle) {
  if (!legalCards(match, seat).includes(card)) return false;
  match.hands[seat].splice(match.hands[seat].indexOf(card), 1);
  match.trick.push(card);
  match.turn = (seat + 1) % SEATS;
  if (match.trick.length === SEATS) finishTrick(match, shuffle);
  return true;
}

function finishTrick(match, shuffle) {
  const led = suitOf(match.trick[0]);
  const best = Math.max(...match.trick.filter((card) => suitOf(card) === led));
  const winner = (match.turn + match.trick.indexOf(best)) % SEATS;
  match.won[winner].push(...match.trick);
  match.scores[winner] += 1;
  match.trick = [];
  match.turn = winner;
  if (match.hands[winner].length) return;
  match.round += 1;
  match.turn = match.round % SEATS;
  if (!isOver(match)) deal(match, shuffle);
}

export const isOver = (match) => match.round === ROUNDS;

/** What the seat may know. The load client reads `legal`, so it comes last. */
export function viewOf(match, seat) {
  const { round, turn, scores, trick, won, hands } = match;
  return { seat, round, turn, scores, trick, won, hand: hands[seat], legal: legalCards(match, seat) };
}

/** A shuffled copy. */
export function shuffled(cards) {
  const copy = [...cards];
  for (let last = copy.length - 1; last > 0; last--) {
    const other = Math.floor(Math.random() * (last + 1));
    [copy[last], copy[other]] = [copy[other], copy[last]];
  }
  return copy;
}
