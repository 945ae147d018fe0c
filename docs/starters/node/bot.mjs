// Attends the lobby, and keeps a link to each referee at which the bot has seats.

import { Link } from "./link.mjs";
import { Seat, seatKey } from "./seat.mjs";
import { Stream } from "./wire.mjs";

export class Bot {
  /**
   * @param options address, token, insecure, queues, maxMatches, matches, after which the bot stops (0 means never),
   *   choose(pace, view, update), and, if you like, log(line) and matchEnded(ended, offer)
   */
  constructor(options) {
    this.options = { queues: [], maxMatches: 4, matches: 0, log: console.error, ...options };
    this.log = this.options.log;
    this.seats = new Map(); // by seatKey
    this.past = new Set();
    this.links = new Map(); // by address
    this.epochs = new Map(); // the highest of each match
    this.finished = 0;
    this.isDraining = false;
    this.isDrained = false; // whether the lobby has confirmed that it offers no more seats
    this.attendance = new Stream(`${options.address}/v1/attend`, this.options, true, this);
  }

  /** Attends and plays until all is drained. Rejects with an error that no other attempt can mend. */
  run() {
    return new Promise((resolve, reject) => {
      this.stop = resolve;
      this.fail = reject;
      this.attendance.open();
    });
  }

  /** Takes no more seats, finishes the open matches, and ends. */
  drain() {
    this.log(`draining: ${this.seats.size} matches are open`);
    this.isDraining = true;
    this.#sendLimit();
  }

  // The lobby

  handleOpened() {
    this.#sendLimit();
  }

  #sendLimit() {
    this.attendance.send({ queues: this.options.queues, maxMatches: this.#limit() });
  }

  #limit() {
    const { maxMatches, matches } = this.options;
    if (this.isDraining) {
      return 0;
    }
    return matches ? Math.min(maxMatches, Math.max(0, matches - this.finished)) : maxMatches;
  }

  handleFinalEnd(error) {
    this.fail(error);
  }

  handleMessage(response) {
    if (response.welcome) {
      this.isDrained = this.isDraining && response.welcome.maxMatches === 0 && !response.welcome.pendingSeats;
      this.#endIfDone();
    } else if (response.offer) {
      this.#handleOffer(response.offer);
    } else if (response.closed) {
      this.#handleClosed(this.seats.get(seatKey(response.closed.match, response.closed.seat)));
    } else if (response.takenOff) {
      this.log(`off ${response.takenOff.queue}: ${response.takenOff.reason}`);
    }
  }

  /** Takes a seat, or moves it to the referee that has taken its match over. */
  #handleOffer(offer) {
    const key = seatKey(offer.match, offer.seat);
    const open = this.seats.get(key);
    if (this.past.has(key) || open?.offer.epoch === offer.epoch || this.isOutdated(offer.match, offer.epoch)) {
      return;
    }
    if (!open) {
      this.log(`seated in ${offer.match} at seat ${offer.seat} against ${offer.bots}`);
    }
    const seat = open ?? new Seat(this, offer);
    this.seats.set(key, seat);
    const left = seat.link;
    seat.offer = offer;
    seat.link = this.#linkTo(offer.wsAddress || this.options.address);
    seat.sitDown();
    this.#closeLinkWithoutSeats(left);
  }

  #linkTo(address) {
    if (!this.links.has(address)) {
      this.links.set(address, new Link(this, address));
    }
    return this.links.get(address);
  }

  /** Asks the referee how the match ended, because its word may have been lost. */
  #handleClosed(seat) {
    seat?.later(1_000, () => seat.sitDown());
    seat?.later(30_000, () => this.closeSeat(seat));
  }

  // Seats

  /** Whether this epoch is older than one already seen; epoch 0 belongs to no owner. It notes the epoch. */
  isOutdated(match, epoch) {
    const [given, seen] = [BigInt(epoch), this.epochs.get(match) ?? 0n];
    if (given > seen) {
      this.epochs.set(match, given);
    }
    return given > 0n && given < seen;
  }

  seatsAt(link) {
    return [...this.seats.values()].filter((seat) => seat.link === link);
  }

  closeSeat(closed) {
    this.seats.delete(closed.key);
    this.past.add(closed.key);
    this.#closeLinkWithoutSeats(closed.link);
    this.isDraining ||= this.options.matches > 0 && this.finished >= this.options.matches;
    this.#sendLimit();
    this.#endIfDone();
  }

  #closeLinkWithoutSeats(link) {
    if (link && !this.seatsAt(link).length) {
      this.links.delete(link.address);
      link.close();
    }
  }

  #endIfDone() {
    if (this.isDrained && !this.seats.size) {
      this.stop();
    }
  }
}
