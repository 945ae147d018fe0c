// Opens WebSockets that may carry the token, and opens them again when they break.

const SUBPROTOCOL = "seatwise.v1.json";
const FIRST_WAIT_MS = 100;
const LONGEST_WAIT_MS = 5_000;
const THIS_MACHINE = new Set(["localhost", "127.0.0.1", "[::1]"]);
const FINAL_CODES = new Set(["UNAUTHENTICATED", "PERMISSION_DENIED"]);
const FINAL_AT_LOBBY = new Set([
  "NOT_FOUND",
  "INVALID_ARGUMENT",
  "OUT_OF_RANGE",
  "ALREADY_EXISTS",
  "FAILED_PRECONDITION",
  "UNIMPLEMENTED",
]);

/** The end of a stream, with the reason that the server gave, if it gave one. */
export class StreamEnd extends Error {
  constructor(message, code = "UNAVAILABLE", reason = "", metadata = {}) {
    super(reason ? `${message} [${reason}]` : message);
    Object.assign(this, { code, reason, metadata });
  }
}

/** Returns ws://host:port or wss://host:port. Without a scheme it is TLS to another machine, and plain text to this one. */
export function readAddress(address) {
  const url = address.includes("://") ? address : `${isThisMachine(`ws://${address}`) ? "ws" : "wss"}://${address}`;
  return url.replace(/\/+$/, "");
}

function isThisMachine(url) {
  return THIS_MACHINE.has(new URL(url).hostname);
}

/**
 * A stream that is opened again whenever it ends, until it ends for good or is closed.
 *
 * `owner` has handleOpened(), handleMessage(message) and handleFinalEnd(error).
 */
export class Stream {
  constructor(url, { token, insecure, log }, isLobby, owner) {
    Object.assign(this, { url, token, insecure, log, isLobby, owner });
    this.failures = 0;
    this.isClosed = false;
    this.heardAt = 0;
  }

  open() {
    if (this.isClosed) {
      return;
    }
    if (this.url.startsWith("ws:") && !this.insecure && !isThisMachine(this.url)) {
      this.owner.handleFinalEnd(new StreamEnd("the token would travel in clear; use wss://, or --insecure"));
      return;
    }
    this.openedAt = Date.now();
    this.end = new StreamEnd("the connection broke");
    const socket = (this.socket = new WebSocket(this.url, SUBPROTOCOL));
    socket.onopen = () => {
      socket.send(JSON.stringify({ token: this.token })); // never in the URL: that ends up in logs
      this.isOpen = true;
      this.heardAt = Date.now();
      this.owner.handleOpened();
    };
    socket.onmessage = (event) => this.#handleText(socket, event.data);
    socket.onerror = (event) => {
      this.end = this.end.reason ? this.end : new StreamEnd(event.error?.message || "the connection broke");
      this.#handleEnd(socket); // not every version of Node says `close` too
    };
    socket.onclose = () => this.#handleEnd(socket);
  }

  /** Sends a message, or drops it while the stream is down: the owner repeats what was not confirmed. */
  send(message) {
    if (this.isOpen && this.socket?.readyState === WebSocket.OPEN) {
      this.socket.send(JSON.stringify(message));
    }
  }

  /** Opens the stream again if nothing was heard for so long: the other end may be gone without a word. */
  renewAfter(silenceMs) {
    if (this.isOpen && Date.now() - this.heardAt > silenceMs) {
      this.end = new StreamEnd("nothing was heard");
      const { socket } = this;
      this.#handleEnd(socket);
      socket.close();
    }
  }

  close() {
    this.isClosed = true;
    this.isOpen = false;
    this.socket?.close();
  }

  #handleText(socket, text) {
    const message = JSON.parse(text);
    this.heardAt = Date.now();
    if (message.error) {
      const { status, details } = message.error;
      this.end = new StreamEnd(message.error.message, status, details?.[0]?.reason, details?.[0]?.metadata);
    } else if (socket === this.socket && !this.isClosed) {
      this.owner.handleMessage(message);
    }
  }

  #handleEnd(socket) {
    if (this.isClosed || socket !== this.socket) {
      return;
    }
    this.isOpen = false;
    this.socket = null;
    if (isFinal(this.end, this.isLobby)) {
      this.owner.handleFinalEnd(this.end);
      return;
    }
    this.failures = Date.now() - this.openedAt > LONGEST_WAIT_MS ? 0 : this.failures + 1;
    this.log(`${this.url}: ${this.end.message}; coming again`);
    setTimeout(() => this.open(), waitAfterMs(this.end, this.failures));
  }
}

/** Whether another attempt must not be made: the table "When to reconnect" of docs/protocol.md. */
function isFinal(end, isLobby) {
  return end.reason === "REPLACED" || FINAL_CODES.has(end.code) || (isLobby && FINAL_AT_LOBBY.has(end.code));
}

/** Returns a random time below a bound that doubles, after the time that a full server asks for. */
function waitAfterMs(end, failures) {
  const bound = Math.min(LONGEST_WAIT_MS, FIRST_WAIT_MS * 2 ** failures);
  return Number(end.metadata?.retry_after ?? 0) * 1000 + Math.random() * bound;
}
