// The side of a child process of the bench: it says where it listens, and ends when its standard input does.

/** One line of JSON, as `processes.py` hears it. */
export function serveUntilEnd(port) {
  console.log(JSON.stringify({ address: `127.0.0.1:${port}`, pid: process.pid }));
  process.stdin.resume();
  process.stdin.on("end", () => process.exit(0));
}
