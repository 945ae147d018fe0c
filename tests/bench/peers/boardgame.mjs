// The game on boardgame.io. It tells each move to all four seats, as it always does; `playerView` hides hands. Its storage appends
// each move to Redis before it keeps it in memory; boardgame.io tells the seats at the same time, so it does not keep our promise.
// package.json holds koa-compose at 4.1: with 4.2 the lobby's routes of boardgame.io 0.50.2 are not found.

import { createRequire } from "node:module";
import { INVALID_MOVE } from "boardgame.io/dist/cjs/core.js";
import { isOver, newMatch, play, viewOf } from "./game.mjs";
import { append, serveUntilEnd } from "./process.mjs";

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
const { setState } = server.db;
server.db.type = () => 1; // boardgame.io awaits such a storage
server.db.setState = async function (match, state, moves) {
  const told = moves?.map(({ action, _stateID }) => ({ seq: _stateID, seat: action.payload.playerID, card: action.payload.args }));
  if (told) await append(match, { at: Date.now(), moves: told });
  return setState.call(this, match, state, moves);
};
const { appServer } = await server.run({ port: { port: 0, host: "127.0.0.1" } });
serveUntilEnd(appServer.address().port);
