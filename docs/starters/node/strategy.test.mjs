// `node --test` runs these tests.

import assert from "node:assert/strict";
import { test } from "node:test";
import { choose } from "./strategy.mjs";

test("it plays its highest card", () => {
  const view = { legalCards: ["CARD_R5", "CARD_B2", "CARD_G7"] };
  assert.deepEqual(choose("card", view), { play: "CARD_G7" });
});

test("it lays the highest card that it has won on top", () => {
  const view = { wonCards: ["CARD_R5", "CARD_B2"] };
  assert.deepEqual(choose("arrange", view), { arrange: { cards: ["CARD_B2", "CARD_R5"] } });
});
