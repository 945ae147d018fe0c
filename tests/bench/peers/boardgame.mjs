// The game on boardgame.io, in memory. It tells each move to all four seats, as it always does; `playerView` hides hands.
// package.json holds koa-compose at 4.1: with 4.2 the lobby's routes of boardgame.io 0.50.2 are not found.

import { createRequire } from "node:module";
import { INVALID_MOVE } from "boardgame.io/dist/cjs/core.js";
import { isOver, newMatch, play, viewOf } from "./game.mjs";
import { serveUntilEnd } from "./process.mjs";

const { Server } = createRequire(import.meta.url)("boardgame.io/server");

const table = {
  name: "table",
  minPlayers: 4,
  maxPlayers: 4,
  disableUndo: true,
  setup: ({ random }) => newMatch(random.Shuffle),
  moves: {
    play: ({ G, playerID, random }, card) => (play(G, Number(playerID), card, random.Shuffle) ? undefined : INVALID_MOVE),
  },
  turn: {
    minMoves: 1,
    maxMoves: 1,
    order: { first: ({ G }) => G.turn, next: ({ G }) => G.turn },
  },
  endIf: ({ G }) => (isOver(G) ? { scores: G.scores } : undefined),
  playerView: ({ G, playerID }) => viewOf(G, Number(playerID)),
};

const server = Server({ games: [table], origins: ["http://127.0.0.1"] });
const { appServer } = await server.run({ port: { port: 0, host: "127.0.0.1" } });
serveUntilEnd(appServer.address().port);
