// Chooses the moves. This is the place for your own ideas.

/**
 * Answers a prompt of UGO!: plays the highest card, and lays the highest on top.
 * It may be async. Compute for long in a Worker, so that pings are answered meanwhile.
 * @param {string} pace the kind of the prompt: "card" or "arrange"
 * @param {object} view seatwise.games.ugo.v1.View as JSON
 * @returns {object} seatwise.games.ugo.v1.Move as JSON
 */
export function choose(pace, view) {
  if (pace === "arrange") {
    return { arrange: { cards: view.wonCards.toSorted((one, other) => valueOf(one) - valueOf(other)) } };
  }
  const highest = view.legalCards.reduce((one, other) => (valueOf(other) > valueOf(one) ? other : one));
  return { play: highest };
}

/** Returns the value of a card, 0 to 8: CARD_R5 has the value 5. */
function valueOf(card) {
  return Number(card.at(-1));
}
