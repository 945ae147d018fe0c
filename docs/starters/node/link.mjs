// The stream to one referee. It carries all seats of the bot there.

import { seatKey } from "./seat.mjs";
import { Stream } from "./wire.mjs";

const SILENCE_MS = 10_000; // a referee sends a ping every two seconds

export class Link {
  constructor(bot, address) {
    this.bot = bot;
    this.address = address;
    this.stream = new Stream(`${address}/v1/play`, bot.options, false, this);
    this.stream.open();
    this.watch = setInterval(() => this.stream.renewAfter(SILENCE_MS), 1_000);
  }

  send(item) {
    this.stream.send({ items: [item] });
  }

  close() {
    clearInterval(this.watch);
    this.stream.close();
  }

  handleOpened() {
    this.bot.seatsAt(this).forEach((seat) => seat.sitDown());
  }

  handleMessage(response) {
    for (const item of response.items) {
      if (item.ping) {
        this.send({ pong: { number: item.ping.number } });
      } else {
        this.bot.seats.get(seatKey(item.match, item.seat))?.handleItem(item);
      }
    }
  }

  handleFinalEnd(error) {
    this.bot.fail(error);
  }
}
