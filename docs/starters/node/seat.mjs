// One seat of the bot, from the offer to the end of the match.

const AGAIN_MS = 500;
const GAMES = ["ugo", "ubongo", "json"]; // a view and its move stand in a field that is named so

/** Names a seat of a match. */
export function seatKey(match, seat) {
  return `${match}/${seat}`;
}

/** Returns the SHA-256 of bytes; both are base64. */
async function hashOf(base64) {
  const bytes = Uint8Array.from(atob(base64), (letter) => letter.charCodeAt(0));
  return btoa(String.fromCharCode(...new Uint8Array(await crypto.subtle.digest("SHA-256", bytes))));
}

export class Seat {
  constructor(bot, offer) {
    this.bot = bot;
    this.offer = offer;
    this.key = seatKey(offer.match, offer.seat);
    this.link = null;
    this.nonce = btoa(String.fromCharCode(...crypto.getRandomValues(new Uint8Array(32)))); // stays the same over all links
    this.receipt = ""; // the newest that the referee sent
    this.asked = 0; // the prompt that is being thought about or answered
    this.answers = []; // the answers to it, until the next prompt
    this.moves = 0;
  }

  /** Sits down, or again after the link was lost. The answer is the whole view. */
  sitDown() {
    this.#send({ sit: { nonce: this.nonce, receipt: this.receipt } });
  }

  #send(action) {
    this.link.send({ match: this.offer.match, seat: this.offer.seat, ...action });
  }

  #sendAnswers() {
    this.answers.forEach((answer) => this.#send({ submitMove: answer }));
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
      this.answers = [];
    } else if (update.prompt === this.asked) {
      this.#sendAnswers(); // they may have been lost: the same move with the same requestId is never played twice
    } else {
      this.asked = update.prompt;
      this.answers = [];
      this.#think(update);
    }
  }

  async #think(update) {
    const game = GAMES.find((name) => update[name]);
    const chosen = await this.bot.options.choose(update.pace, update[game], update);
    if (this.asked === update.prompt) {
      const moves = Array.isArray(chosen) ? chosen : [chosen];
      this.answers = moves.map((move) => ({ requestId: crypto.randomUUID(), prompt: update.prompt, [game]: move }));
      this.#sendAnswers();
    }
  }

  #handleRejection(rejected) {
    this.bot.log(`${this.offer.match}: rejected: ${rejected.message} [${rejected.reason}]`);
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
        this.later(AGAIN_MS, () => this.#sendAnswers());
        break;
      default: // a fault of the strategy, or too late: the referee plays the default move when the time is over
        this.answers = [];
    }
  }

  async #handleEnd(ended) {
    if (ended.seed && (await hashOf(ended.seed)) !== this.offer.commitment) {
      this.bot.log(`${this.offer.match}: the seed is not the one that the server was committed to`);
    }
    if (this.bot.seats.get(this.key) !== this) {
      return; // this end was told before
    }
    const how = ended.result
      ? `rank ${ended.result.ranks[this.offer.seat]} of [${ended.result.points}]`
      : `void (${ended.voidReason})`;
    this.bot.log(`${this.offer.match}: ${how}, ${this.moves} moves`);
    this.bot.finished += 1;
    this.bot.options.matchEnded?.(ended, this.offer);
    this.bot.closeSeat(this);
  }

  /** Does something after a while, unless the seat is closed by then. */
  later(waitMs, act) {
    setTimeout(() => this.bot.seats.get(this.key) === this && act(), waitMs);
  }
}
