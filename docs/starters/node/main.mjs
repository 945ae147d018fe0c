// A whole Seatwise bot: it attends a queue, plays UGO! over WebSocket, and survives lost links. Your own ideas go into strategy.mjs.

import { parseArgs } from "node:util";
import { Bot } from "./bot.mjs";
import { choose } from "./strategy.mjs";
import { readAddress } from "./wire.mjs";

const HELP = `\
--address ADDRESS   the server's WebSocket port: ws://host:port or wss://host:port
--queue NAMES       the queues to wait in, with commas between them; empty for matches that name the bot
--max-matches N     play at most so many matches at once
--matches N         stop after so many matches; 0 means never
--insecure          let the token travel in clear to another machine
The environment variable SEATWISE_TOKEN holds the bot's token. NODE_EXTRA_CA_CERTS names a file with the CAs to trust.`;

const { values } = parseArgs({
  options: {
    address: { type: "string", default: "ws://localhost:7481" },
    queue: { type: "string", default: "casual" },
    "max-matches": { type: "string", default: "4" },
    matches: { type: "string", default: "0" },
    insecure: { type: "boolean", default: false },
    help: { type: "boolean", default: false },
  },
});
const token = (process.env.SEATWISE_TOKEN ?? "").trim();
if (values.help || !token) {
  console.error(HELP);
  process.exit(2);
}
if (typeof WebSocket === "undefined") {
  console.error("This version of Node has no WebSocket: use Node 22 or newer, or type `node --experimental-websocket main.mjs`.");
  process.exit(2);
}

const bot = new Bot({
  address: readAddress(values.address),
  token,
  choose,
  insecure: values.insecure,
  queues: values.queue.split(",").filter(Boolean),
  maxMatches: Number(values["max-matches"]),
  matches: Number(values.matches),
});
for (const signal of ["SIGINT", "SIGTERM"]) {
  // The first finishes the open matches, the second leaves at once.
  process.on(signal, () => (bot.isDraining ? process.exit(1) : bot.drain()));
}
try {
  await bot.run();
  process.exit(0);
} catch (error) {
  console.error(error.message);
  process.exit(1);
}
