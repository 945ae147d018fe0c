// The side of a child process of the bench: it says where it listens, and ends when its standard input does.

import Redis from "ioredis";

/** One line of JSON, as `processes.py` hears it. */
export function serveUntilEnd(port) {
  console.log(JSON.stringify({ address: `127.0.0.1:${port}`, pid: process.pid }));
  process.stdin.resume();
  process.stdin.on("end", () => process.exit(0));
}

const redis = process.argv[2] ? new Redis({ path: process.argv[2] }) : null;

/** The entry is on disk when this returns: the Redis at the socket of the first argument has `appendfsync always`. Without it nothing is kept. */
export const append = async (match, entry) => redis?.xadd(`journal:${match}`, "*", "e", JSON.stringify(entry));
