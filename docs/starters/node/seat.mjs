// One seat of the bot, from the offer to the end of the match.

import { createHash, randomBytes, randomUUID } from "node:crypto";
import { choose } from "./strategy.mjs";

const AGAIN_MS = 500;

/** Names a seat of a match. */
export function seatKey(match, seat) {
  return `${match}/${seat}`;
}

export class Seat {
  constructor(bot, offer) {
    this.bot = bot;
    this.offer = offer;
    this.key = seatKey(offer.match, offer.seat);
    this.link = null;
    this.nonce = randomBytes(32).toString("base64"); // stays the same over all links
    this.receipt = ""; // the newest that the referee sent
    this.asked = 0; // the prompt that is being thought about or answered
    this.answer = null; // the answer to it, until the referee has confirmed it
    this.moves = 0;
  }

  /** Sits down, or again after the link was lost. The answer is the whole view. */
  sitDown() {
    this.#send({ sit: { nonce: this.nonce, receipt: this.receipt } });
  }

  #send(action) {
    this.link.send({ match: this.offer.match, seat: this.offer.seat, ...action });
  }

  #sendAnswer() {
    if (this.answer) {
      this.#send({ submitMove: this.answer });
    }
  }

  /** Handles an item of the referee. Items of an earlier owner of the match are dropped. */
  handleItem(item) {
    if (this.bot.isOutdated(this.offer.match, item.epoch)) {
      return;
    }
    if (item.update) {
      this.#handleUpdate(item.update);
    } else if (item.moveAccepted) {
      this.receipt = item.moveAccepted.receipt || this.receipt;
      this.moves += 1;
    } else if (item.moveRejected) {
      this.#handleRejection(item.moveRejected);
    } else if (item.matchEnded) {
      this.#handleEnd(item.matchEnded);
    }
  }

  #handleUpdate(update) {
    this.receipt = update.receipt || this.receipt;
    if (!update.toAct) {
      this.asked = 0;
      this.answer = null;
    } else if (update.prompt === this.asked) {
      this.#sendAnswer(); // it may have been lost: the same move with the same requestId is never played twice
    } else {
      this.asked = update.prompt;
      this.answer = null;
      this.#think(update);
    }
  }

  async #think(update) {
    const move = await choose(update.pace, update.ugo);
    if (this.asked === update.prompt) {
      this.answer = { requestId: randomUUID(), prompt: update.prompt, ugo: move };
      this.#sendAnswer();
    }
  }

  #handleRejection(rejected) {
    console.error(`${this.offer.match}: rejected: ${rejected.message} [${rejected.reason}]`);
    switch (rejected.reason) {
      case "REASON_NOT_YOUR_SEAT":
        this.bot.closeSeat(this);
        break;
      case "REASON_NOT_SEATED":
      case "REASON_NOT_HERE":
      case "REASON_MATCH_OVER":
        this.later(AGAIN_MS, () => this.sitDown());
        break;
      case "REASON_TOO_MANY":
        this.later(AGAIN_MS, () => this.#sendAnswer());
        break;
      default: // a fault of the strategy, or too late: the referee plays the default move when the time is over
        this.answer = null;
    }
  }

  #handleEnd(ended) {
    const digest = createHash("sha256").update(Buffer.from(ended.seed, "base64")).digest("base64");
    if (ended.seed && digest !== this.offer.commitment) {
      console.error(`${this.offer.match}: the seed is not the one that the server was committed to`);
    }
    const how = ended.result
      ? `rank ${ended.result.ranks[this.offer.seat]} of [${ended.result.points}]`
      : `void (${ended.voidReason})`;
    console.error(`${this.offer.match}: ${how}, ${this.moves} moves`);
    this.bot.finished += 1;
    this.bot.closeSeat(this);
  }

  /** Does something after a while, unless the seat is closed by then. */
  later(waitMs, act) {
    setTimeout(() => this.bot.seats.get(this.key) === this && act(), waitMs);
  }
}
