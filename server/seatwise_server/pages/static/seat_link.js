// Connects a seat to the server by the WebSockets of bots: the lobby offers the seat, and the referee plays the match.
const PROTOCOL = "seatwise.v1.json";
const NONCE_BYTES = 32;
const FIRST_RETRY_MS = 500, LONGEST_RETRY_MS = 8_000;
// After these the seat is lost to this page: to connect again would not help.
const FINAL = ["REPLACED", "NOT_ALLOWED", "TOKEN_UNKNOWN", "TOKEN_REVOKED", "TOKEN_EXPIRED", "TOKEN_MISSING"];

const encode = (bytes) => btoa(String.fromCharCode(...bytes));

// A socket that comes back when it is lost, until it is closed or refused for good.
class LastingSocket {
  constructor(address, token, first, handlers) {
    Object.assign(this, { address, token, first, handlers, retryMs: FIRST_RETRY_MS, isOver: false });
    this.open();
  }

  open() {
    this.socket = new WebSocket(this.address, PROTOCOL);
    this.socket.onopen = () => {
      this.retryMs = FIRST_RETRY_MS;
      this.send({ token: this.token });
      this.send(this.first());
    };
    this.socket.onmessage = (event) => this.take(JSON.parse(event.data));
    this.socket.onclose = () => this.comeBack();
  }

  take(message) {
    if (!message.error) return this.handlers.onMessage(message);
    const reason = message.error.details?.[0]?.reason;
    this.isOver ||= FINAL.includes(reason);
    this.refusal = message.error.message;
    if (this.isOver) this.handlers.onEnd(reason, message.error.message);
  }

  comeBack() {
    if (this.isOver) return;
    this.handlers.onLost(this.refusal);
    this.refusal = "";
    this.timer = setTimeout(() => this.open(), this.retryMs * (0.5 + Math.random()));
    this.retryMs = Math.min(2 * this.retryMs, LONGEST_RETRY_MS);
  }

  send(message) {
    if (this.socket.readyState === WebSocket.OPEN) this.socket.send(JSON.stringify(message));
  }

  close() {
    this.isOver = true;
    clearTimeout(this.timer);
    this.socket.close();
  }
}

// The referee's port at the host by which the browser has reached the lobby: the referee may know itself by another name.
function addressAtPage(referee, lobby) {
  const found = new URL(referee || lobby);
  found.hostname = new URL(lobby).hostname;
  return found.origin;
}

// `onUpdate(update)`, `onRejected(rejection)`, `onMatchEnd(end)`, `onState(text)`: empty if all is well.
export class SeatLink {
  constructor(told, handlers) {
    Object.assign(this, { told, handlers, epoch: 0n, receipt: "", count: 0 });
    this.nonce = encode(crypto.getRandomValues(new Uint8Array(NONCE_BYTES)));
    this.prefix = encode(crypto.getRandomValues(new Uint8Array(9)));
    const ends = this.endings();
    this.lobby = new LastingSocket(`${told.lobby}/v1/attend`, told.token, () => ({ queues: [], maxMatches: 1 }), {
      ...ends, onMessage: ({ offer }) => offer?.match === told.match && this.goTo(offer),
    });
  }

  endings() {
    return {
      onLost: (refusal) => this.handlers.onState(refusal ? `Not yet: ${refusal}. The page tries again.` : "The connection is lost. The page connects again."),
      onEnd: (reason, message) => {
        this.close();
        this.handlers.onState(reason === "REPLACED" ? "You play in another window now. Load this page again to go on here." : `The server has ended the connection: ${message}`);
      },
    };
  }

  goTo(offer) {
    const address = `${addressAtPage(offer.wsAddress, this.told.lobby)}/v1/play`;
    if (this.referee?.address === address) return;
    this.referee?.close();
    this.referee = new LastingSocket(address, this.told.token, () => this.sit(), { ...this.endings(), onMessage: ({ items }) => items.forEach((item) => this.take(item)) });
  }

  sit() {
    return this.item({ sit: { nonce: this.nonce, updates: "UPDATES_EVERY_CHANGE", receipt: this.receipt } });
  }

  item(...actions) {
    return { items: actions.map((action) => ({ match: this.told.match, seat: this.told.seat, ...action })) };
  }

  take(item) {
    if (item.ping) return this.referee.send({ items: [{ pong: { number: item.ping.number } }] });
    const epoch = BigInt(item.epoch);
    if (item.match !== this.told.match || (epoch && epoch < this.epoch)) return;
    this.epoch = epoch || this.epoch;
    this.receipt = item.update?.receipt || item.moveAccepted?.receipt || this.receipt;
    if (item.update) {
      this.prompt = item.update.prompt;
      this.handlers.onState("");
      this.handlers.onUpdate(item.update);
    }
    if (item.moveRejected && item.moveRejected.reason !== "REASON_NOT_HERE") this.handlers.onRejected(item.moveRejected);
    if (item.matchEnded) {
      this.close();
      this.handlers.onMatchEnd(item.matchEnded);
    }
  }

  // Answers the open prompt with one move, or with several in their order.
  submit(...moves) {
    const submitted = moves.map((move) => ({ requestId: `${this.prefix}-${++this.count}`, prompt: this.prompt, ...move }));
    this.referee?.send(this.item(...submitted.map((submitMove) => ({ submitMove }))));
  }

  resign() {
    this.referee?.send(this.item({ resign: {} }));
  }

  close() {
    this.lobby.close();
    this.referee?.close();
  }
}
