// The game as a room of Colyseus. Each move is in Redis before any seat is told. Hidden hands go out as a message for the seat that
// is asked next.

import { Room, Server } from "@colyseus/core";
import { WebSocketTransport } from "@colyseus/ws-transport";
import { SEATS, isOver, newMatch, play, shuffled, viewOf } from "./game.mjs";
import { append, serveUntilEnd } from "./process.mjs";

class Table extends Room {
  maxClients = SEATS;
  patchRate = null; // it has no shared state to patch
  seatReservationTime = 60; // seconds: a load on a busy machine may be slow to connect

  onCreate() {
    this.onMessage("move", (client, card) => this.take(client, card));
  }

  onJoin(client) {
    client.userData = this.clients.indexOf(client);
    if (this.clients.length < SEATS) return;
    this.match = newMatch(shuffled);
    this.moves = 0;
    this.tell();
  }

  async take(client, card) {
    if (!this.match || !play(this.match, client.userData, card, shuffled)) return client.error(400, "this move is not legal");
    this.moves += 1;
    await append(this.roomId, { seq: this.moves, at: Date.now(), kind: "move", seat: client.userData, card });
    if (isOver(this.match)) this.end();
    else this.tell();
  }

  tell() {
    const asked = this.clients.find((client) => client.userData === this.match.turn);
    asked?.send("view", viewOf(this.match, asked.userData));
  }

  end() {
    this.broadcast("ended", this.match.scores);
    this.disconnect();
  }
}

const transport = new WebSocketTransport();
const server = new Server({ transport, greet: false });
server.define("table", Table);
await server.listen(0, "127.0.0.1");
serveUntilEnd(transport.server.address().port);
