// `node --test` runs these tests.

import assert from "node:assert/strict";
import { test } from "node:test";
import { choose } from "./strategy.mjs";

test("it plays its lowest card", () => {
  const view = { legalCards: ["CARD_R5", "CARD_B2", "CARD_G7"] };
  assert.deepEqual(choose("card", view), { play: "CARD_B2" });
});

test("it lays the cards that it has won", () => {
  const view = { wonCards: ["CARD_R5", "CARD_B2"] };
  assert.deepEqual(choose("arrange", view), { arrange: { cards: view.wonCards } });
});
