// The seat of a person in UGO!: the cards of its hand are buttons, and won cards are laid in the order in which they are chosen.
import { boardsFromOwn, countOf, head, make, makeButton, totalsOf } from "./seat_parts.js";
import { picture, toElement } from "./shapes.js";
import { UGO, drawUgoCard, drawUgoKingdom, nameUgoCard } from "./ugo.js";

const short = (card) => card.replace("CARD_", "");
const cardsOf = (cards) => cards.map(short);

// What lies on the table, in the form in which replays have it.
function tableOf(view) {
  const last = view.tricks.at(-1);
  return {
    round: view.round, rounds: view.rounds, supply: view.supply, leader: view.leader, tricks: view.tricks.length,
    trick: cardsOf(view.trick), last: last ? { leader: last.leader, cards: cardsOf(last.cards), winner: last.winner } : null,
  };
}

const kingdomOf = ({ sections, farmers }) => ({ farmers, sections: sections.map(({ cards }) => cardsOf(cards)) });

const describeKingdom = ({ sections, farmers }) =>
  `${sections.map((cards, place) => `${"ABCDE"[place]} ${cards.join(" ") || "empty"}`).join(", ")}; ${farmers} farmers`;

export class UgoSeat {
  constructor(element, told, submit) {
    Object.assign(this, { told, submit, chosen: [] });
    this.facts = make("h2");
    this.table = make("div", { class: "table" });
    this.last = make("p", { class: "note" });
    this.hand = make("div", { class: "hand", role: "group", tabindex: "-1", "aria-label": "Your hand" });
    this.boards = make("div", { class: "boards" });
    this.hand.addEventListener("keydown", (event) => this.moveFocus(event));
    element.replaceChildren(this.facts, this.table, this.last, this.hand, this.boards);
  }

  // Shows the view, and returns what the person is to do.
  update({ ugo: view, toAct, pace }) {
    if (this.won !== view.wonCards.join()) this.chosen = [];
    Object.assign(this, { view, won: view.wonCards.join(), task: toAct ? pace : "" });
    const frame = { table: tableOf(view), asked: toAct ? [this.told.seat] : [] };
    this.facts.textContent = UGO.describeFacts(frame);
    this.table.replaceChildren(toElement(UGO.drawTable(frame, this.told.names)));
    this.last.textContent = this.describeLastTrick();
    this.drawBoards();
    this.drawHand();
    if (this.task === "card") return "Your turn: play a card.";
    if (this.task === "arrange") return this.askForOrder();
    return "The others are thinking.";
  }

  // The others think quickly, so a person sees what they played in the trick before.
  describeLastTrick() {
    const last = this.view.tricks.at(-1) ?? this.view.lastRound.at(-1), { names } = this.told;
    if (!last) return "\u00a0";
    const played = last.cards.map((card, place) => `${names[(last.leader + place) % names.length]} ${short(card)}`);
    return `Last trick: ${played.join(", ")}. ${names[last.winner]} won it.`;
  }

  askForOrder() {
    const laid = this.chosen.length ? ` Chosen: ${cardsOf(this.chosen).join(", ")}.` : "";
    return `You have won the trick. Choose the order in which you lay its cards: the first is laid first.${laid}`;
  }

  drawHand() {
    const isOrder = this.task === "arrange";
    const shown = isOrder ? this.view.wonCards : this.view.hand;
    const open = isOrder ? this.view.wonCards.filter((card) => !this.chosen.includes(card)) : this.task ? this.view.legalCards : [];
    const before = document.activeElement?.dataset?.card, hasFocus = this.hand.contains(document.activeElement);
    const buttons = shown.map((card) => this.drawCard(card, open.includes(card), isOrder));
    const again = isOrder && this.chosen.length ? [makeButton("Choose again", () => this.chooseAgain())] : [];
    this.hand.replaceChildren(...buttons, ...again);
    if (!hasFocus) return;
    // While no card may be played, the hand itself keeps the focus: a person who plays by keys is not sent to the top.
    const usable = buttons.filter((each) => !each.disabled);
    (usable.find((each) => each.dataset.card === before) ?? usable[0] ?? this.hand).focus();
  }

  drawCard(card, isOpen, isOrder) {
    const name = nameUgoCard(short(card)), verb = isOrder ? "Lay" : "Play";
    const button = makeButton("", () => this.choose(card), { class: "tile-button", "data-card": card, "aria-label": isOpen ? `${verb} ${name}` : name, title: name });
    button.disabled = !isOpen;
    button.replaceChildren(toElement({ ...picture(32, 46, name, drawUgoCard(short(card), 1, 1)) }));
    return button;
  }

  choose(card) {
    if (this.task === "card") {
      this.task = "";
      this.drawHand();
      this.told.say(`Played ${nameUgoCard(short(card))}.`);
      return this.submit({ ugo: { play: card } });
    }
    this.chosen.push(card);
    const left = this.view.wonCards.filter((each) => !this.chosen.includes(each));
    if (left.length === 1) this.chosen.push(left[0]);
    if (left.length > 1) this.told.say(this.askForOrder());
    else {
      this.task = "";
      this.told.say(`Laid ${cardsOf(this.chosen).join(", ")}.`);
      this.submit({ ugo: { arrange: { cards: this.chosen } } });
    }
    this.drawHand();
  }

  chooseAgain() {
    this.chosen = [];
    this.told.say(this.askForOrder());
    this.drawHand();
    this.hand.firstChild?.focus();
  }

  // After a rejected move, or when the time of it was over.
  askAgain() {
    this.chosen = [];
  }

  moveFocus(event) {
    const step = { ArrowRight: 1, ArrowLeft: -1 }[event.key];
    const open = [...this.hand.querySelectorAll("button:not(:disabled)")];
    const place = open.indexOf(document.activeElement);
    if (!step || place < 0) return;
    event.preventDefault();
    open[(place + step + open.length) % open.length].focus();
  }

  drawBoards() {
    const { view, told } = this, totals = totalsOf(view.points, told.names.length);
    this.boards.replaceChildren(...boardsFromOwn(told, (name, seat) => {
      const kingdom = kingdomOf(view.kingdoms[seat]), isOwn = seat === told.seat;
      const said = [`${totals[seat]} points`, isOwn ? "" : countOf(view.handSizes[seat], "card")];
      const drawn = picture(324, 136, `${name}: ${describeKingdom(kingdom)}`, drawUgoKingdom(kingdom, 5, 4));
      return make("section", isOwn ? { class: "own" } : {}, head(name, ...said), toElement(drawn));
    }));
  }
}
