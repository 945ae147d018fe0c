// The game as a room of Colyseus. Hidden hands go out as a message for each client. `all` as argument: each move is told to all
// four seats; otherwise only to the seat that is asked next.

import { Room, Server } from "@colyseus/core";
import { WebSocketTransport } from "@colyseus/ws-transport";
import { SEATS, isOver, newMatch, play, shuffled, viewOf } from "./game.mjs";
import { serveUntilEnd } from "./process.mjs";

const tellsAll = process.argv[2] === "all";

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
    this.tell();
  }

  take(client, card) {
    if (!this.match || !play(this.match, client.userData, card, shuffled)) client.error(400, "this move is not legal");
    else if (isOver(this.match)) this.end();
    else this.tell();
  }

  tell() {
    for (const client of this.clients) {
      if (tellsAll || client.userData === this.match.turn) client.send("view", viewOf(this.match, client.userData));
    }
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
