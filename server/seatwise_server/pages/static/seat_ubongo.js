// The seat of a person in Ubongo: cards are dragged onto the board, or moved and turned by buttons and keys.
import { boardsFromOwn, countOf, head, make, makeButton, totalsOf } from "./seat_parts.js";
import { label, shape, toElement } from "./shapes.js";
import { cellsOf, drawLayout, drawTile } from "./ubongo.js";

const CELL = 20, COLUMNS = 18, ROWS = 12, MARGIN = 3, BOUND = 30, GOAL = 7;
const RACK_STEP = 2.5 * CELL, RACK_ROW = 3.6 * CELL, IN_RACK_ROW = 7;
const DRAG_FROM = 5;
const LAY_AFTER_MS = 80;
const CARDS_OF_DECK = 36;

export const nameUbongoCard = (card) => `${1 + Math.floor((card - 1) / CARDS_OF_DECK)}-${String(((card - 1) % CARDS_OF_DECK) + 1).padStart(2, "0")}`;
const key = ([x, y]) => `${x},${y}`;

// The layout of a view, as [card, x, y, turn].
const readLayout = (layout) => (layout ? layout.cards.map((card, place) => [card, layout.xs[place], layout.ys[place], layout.turns[place]]) : []);
const writeLayout = (laid) => ({ cards: laid.map(([card]) => card), xs: laid.map(([, x]) => x), ys: laid.map(([, , y]) => y), turns: laid.map(([, , , turn]) => turn) });
const sidesOf = (cards, symbols) => cards.map((card, place) => [card, symbols.slice(6 * place, 6 * place + 6)]);

export class UbongoSeat {
  constructor(element, told, submit) {
    Object.assign(this, { told, submit, laid: [], round: 0, chosen: 0, isOffering: false, hasCalled: false, window: [0, 0, COLUMNS, ROWS] });
    this.facts = make("h2");
    this.board = make("div", { class: "build" });
    this.turnButton = makeButton("Turn", () => this.turn(this.chosen));
    this.backButton = makeButton("Back to the hand", () => this.takeBack(this.chosen));
    this.callButton = makeButton("Call \u201cUbongo!\u201d", () => this.call(), { class: "main" });
    this.offerButton = makeButton("Agree to end the round", () => this.offer(), { "aria-pressed": "false" });
    const bar = make("div", { class: "choices", role: "group", "aria-label": "Your moves" }, this.turnButton, this.backButton, this.callButton, this.offerButton);
    const help = make("p", { class: "note" }, "Drag cards onto the board. A click puts a card there, or chooses it; a double click turns it. Keys: Tab goes through the cards, Enter lays one, the arrow keys move it, R turns it, Delete takes it back.");
    this.boards = make("div", { class: "boards" });
    element.replaceChildren(this.facts, this.board, bar, help, this.boards);
    this.board.addEventListener("keydown", (event) => this.onKey(event));
  }

  // Shows the view, and returns what the person is to do.
  update({ ubongo: view, toAct }) {
    if (view.round !== this.round) Object.assign(this, { laid: readLayout(view.layout), chosen: 0, hasCalled: false, isOffering: false });
    else if (this.wasLost && this.laid.length) this.lay();
    Object.assign(this, { view, round: view.round, canMove: toAct, wasLost: false, symbols: Object.fromEntries(sidesOf(view.hand, view.symbols)) });
    if (!toAct) this.hasCalled = false;
    this.isOffering = view.offers.includes(this.told.seat);
    this.laid = this.laid.filter(([card]) => view.hand.includes(card));
    this.draw();
    this.drawBoards();
    this.facts.textContent = `Round ${view.round} of ${view.rounds}`;
    return this.describeTask();
  }

  describeTask() {
    if (this.view.out.includes(this.told.seat)) return "Your cards did not fit, so you are out of this round.";
    if (this.hasCalled) return "You have called. The server checks your cards.";
    if (!this.canMove) return "The round is over for you.";
    const offers = this.view.offers.filter((seat) => seat !== this.told.seat).map((seat) => this.told.names[seat]);
    const asked = offers.length && !this.isOffering ? ` ${offers.join(" and ")} would end the round.` : "";
    return `${this.laid.length} of ${GOAL} cards are laid.${asked}`;
  }

  noteLoss() {
    this.wasLost = true;
  }

  askAgain() {
    this.hasCalled = false;
    this.draw();
  }

  // What the person does

  find(card) {
    return this.laid.find(([each]) => each === card);
  }

  // Puts the card there if it can lie there. Returns whether it does.
  place(card, x, y, turn) {
    if (!this.canMove || this.hasCalled || !this.isFree(card, x, y, turn)) {
      this.told.say(this.canMove ? "Two cards cannot overlap." : "You cannot move now.");
      this.draw();
      return false;
    }
    this.laid = [...this.laid.filter(([each]) => each !== card), [card, x, y, turn]];
    this.chosen = card;
    this.changed(`${this.describe(card)}. ${this.describeTask()}`);
    return true;
  }

  isFree(card, x, y, turn) {
    const taken = new Set(this.laid.filter(([each]) => each !== card).flatMap(cellsOf).map(key));
    const cells = cellsOf([card, x, y, turn]);
    return cells.every((cell) => !taken.has(key(cell)) && cell.every((each) => Math.abs(each) <= BOUND)) && Math.abs(x) <= BOUND && Math.abs(y) <= BOUND;
  }

  // Lays a card of the hand where it touches no other.
  layApart(card) {
    const taken = new Set(this.laid.flatMap(cellsOf).flatMap(([x, y]) => [-1, 0, 1].flatMap((dx) => [-1, 0, 1].map((dy) => key([x + dx, y + dy])))));
    const [left, top, wide, high] = this.window;
    for (let y = top + 1; y < top + high - 2; y++)
      for (let x = left + 1; x < left + wide - 1; x++)
        if (cellsOf([card, x, y, 0]).every((cell) => !taken.has(key(cell)))) return this.place(card, x, y, 0);
    return this.place(card, Math.max(...this.laid.flatMap(cellsOf).map(([x]) => x)) + 2, top + 1, 0);
  }

  turn(card) {
    const found = this.find(card);
    if (found) this.place(card, found[1], found[2], (found[3] + 1) % 4);
  }

  takeBack(card) {
    if (!this.find(card) || !this.canMove || this.hasCalled) return;
    this.laid = this.laid.filter(([each]) => each !== card);
    this.changed(`Card ${nameUbongoCard(card)} is back in your hand. ${this.describeTask()}`);
  }

  changed(said) {
    this.draw();
    this.told.say(said);
    clearTimeout(this.layTimer);
    this.layTimer = setTimeout(() => this.lay(), LAY_AFTER_MS);
  }

  moveOfLayout() {
    clearTimeout(this.layTimer);
    return { ubongo: { lay: writeLayout(this.laid) } };
  }

  lay() {
    this.submit(this.moveOfLayout());
  }

  call() {
    const back = this.isOffering ? [{ ubongo: { offerEnd: { on: false } } }] : [];
    this.submit(...back, this.moveOfLayout(), { ubongo: { call: {} } });
    this.hasCalled = true;
    this.draw();
    this.told.say(this.describeTask());
  }

  offer() {
    this.isOffering = !this.isOffering;
    this.submit(this.moveOfLayout(), { ubongo: { offerEnd: { on: this.isOffering } } });
    this.draw();
    this.told.say(this.isOffering ? "You agree to end the round. It ends when all agree." : "You build on.");
  }

  onKey(event) {
    const card = Number(event.target.closest?.("[data-card]")?.dataset.card);
    if (!card || event.ctrlKey || event.metaKey || event.altKey) return;
    const found = this.find(card), steps = { ArrowLeft: [-1, 0], ArrowRight: [1, 0], ArrowUp: [0, -1], ArrowDown: [0, 1] };
    const go = {
      Enter: () => (found ? this.choose(card) : this.layApart(card)), " ": () => (found ? this.choose(card) : this.layApart(card)),
      r: () => this.turn(card), R: () => this.turn(card), Delete: () => this.takeBack(card), Backspace: () => this.takeBack(card),
    }[event.key];
    const step = found && steps[event.key];
    if (!go && !step) return;
    event.preventDefault();
    if (go) go();
    else this.place(card, found[1] + step[0], found[2] + step[1], found[3]);
  }

  choose(card) {
    this.chosen = card;
    this.draw();
    this.told.say(`${this.describe(card)}.`);
  }

  // Drawing

  describe(card) {
    const [, x, y, turn] = this.find(card) ?? [], rows = this.symbols[card].match(/../g).join(" ");
    if (turn === undefined) return `Card ${nameUbongoCard(card)}, ${rows}, in your hand`;
    return `Card ${nameUbongoCard(card)}, ${rows}, column ${x}, row ${y}${turn ? `, turned by ${90 * turn} degrees` : ""}`;
  }

  fitWindow() {
    const cells = this.laid.flatMap(cellsOf);
    if (!cells.length) return [0, 0, COLUMNS, ROWS];
    const [left, top, wide, high] = this.window;
    const xs = cells.map(([x]) => x), ys = cells.map(([, y]) => y);
    const x = Math.min(left, Math.min(...xs) - MARGIN), y = Math.min(top, Math.min(...ys) - MARGIN);
    return [x, y, Math.max(left + wide, Math.max(...xs) + MARGIN + 1) - x, Math.max(top + high, Math.max(...ys) + MARGIN + 1) - y];
  }

  rackPlace(place) {
    const [left, top, , high] = this.window;
    return [(left + 0.5) * CELL + (place % IN_RACK_ROW) * RACK_STEP, (top + high + 1) * CELL + Math.floor(place / IN_RACK_ROW) * RACK_ROW];
  }

  draw() {
    const focused = Number(document.activeElement?.closest?.("#seat [data-card]")?.dataset.card);
    this.window = this.fitWindow();
    const [left, top, wide, high] = this.window, rackHigh = 2 * RACK_ROW + CELL;
    const grid = shape("path", { class: "grid", d: this.gridPath() });
    const tiles = this.view.hand.map((card, place) => this.drawCard(card, place));
    const inHand = label((left + 0.5) * CELL, (top + high) * CELL + 14, "Your hand", "small", "start");
    const drawn = shape("svg", { viewBox: `${left * CELL - 1} ${top * CELL - 1} ${wide * CELL + 2} ${high * CELL + rackHigh}`, class: "drawn", role: "group", "aria-label": "Board and hand" }, grid, inHand, ...tiles);
    this.board.replaceChildren(toElement(drawn));
    this.svg = this.board.firstChild;
    for (const each of this.svg.querySelectorAll("[data-card]")) this.letDrag(each);
    if (focused) this.svg.querySelector(`[data-card="${focused}"]`)?.focus({ preventScroll: true });
    const isFree = this.canMove && !this.hasCalled;
    this.turnButton.disabled = this.backButton.disabled = !isFree || !this.find(this.chosen);
    this.callButton.disabled = !isFree || this.laid.length < GOAL;
    this.offerButton.disabled = !isFree;
    this.offerButton.setAttribute("aria-pressed", this.isOffering);
  }

  gridPath() {
    const [left, top, wide, high] = this.window;
    const down = Array.from({ length: wide + 1 }, (_, x) => `M${(left + x) * CELL} ${top * CELL}v${high * CELL}`);
    return down.concat(Array.from({ length: high + 1 }, (_, y) => `M${left * CELL} ${(top + y) * CELL}h${wide * CELL}`)).join("");
  }

  drawCard(card, place) {
    const found = this.find(card), [rackX, rackY] = this.rackPlace(place);
    const tile = drawTile(found ?? [card, 0, 0, 0], this.symbols[card], card === this.chosen && found ? "chosen" : "");
    tile.inside = tile.inside.filter((each) => each.name !== "title");
    const moved = found ? "" : `translate(${rackX} ${rackY})`;
    return shape("g", { "data-card": card, tabindex: 0, role: "button", "aria-label": this.describe(card), transform: moved, class: "handle" }, tile);
  }

  toBoard(event) {
    const point = new DOMPoint(event.clientX, event.clientY).matrixTransform(this.svg.getScreenCTM().inverse());
    return [point.x, point.y];
  }

  letDrag(element) {
    const card = Number(element.dataset.card);
    element.addEventListener("pointerdown", (event) => {
      if (event.button) return;
      event.preventDefault();
      element.focus({ preventScroll: true });
      this.drag(element, card, this.toBoard(event), event.pointerId);
    });
    // Browsers scroll with a finger on a part of a drawing whatever its style says.
    element.addEventListener("touchstart", (event) => event.preventDefault(), { passive: false });
    element.addEventListener("dblclick", () => this.turn(card));
  }

  drag(element, card, [startX, startY], pointer) {
    element.setPointerCapture(pointer);
    const base = element.getAttribute("transform") ?? "";
    const origin = this.find(card) ? [this.find(card)[1] * CELL, this.find(card)[2] * CELL] : this.rackPlace(this.view.hand.indexOf(card));
    let moved = [0, 0];
    const onMove = (event) => {
      const [x, y] = this.toBoard(event);
      moved = [x - startX, y - startY];
      element.setAttribute("transform", `translate(${moved.join(" ")}) ${base}`);
    };
    const onUp = (event) => {
      element.removeEventListener("pointermove", onMove);
      element.removeEventListener("pointerup", onUp);
      element.removeEventListener("pointercancel", onUp);
      if (event.type === "pointercancel") this.draw();
      else if (Math.hypot(...moved) < DRAG_FROM) this.find(card) ? this.choose(card) : this.layApart(card);
      else this.drop(card, origin[0] + moved[0], origin[1] + moved[1]);
    };
    element.addEventListener("pointermove", onMove);
    element.addEventListener("pointerup", onUp);
    element.addEventListener("pointercancel", onUp);
  }

  drop(card, x, y) {
    const [, top, , high] = this.window, turn = this.find(card)?.[3] ?? 0;
    if (y > (top + high - 1.5) * CELL) return this.find(card) ? this.takeBack(card) : this.draw();
    this.place(card, Math.round(x / CELL), Math.round(y / CELL), turn);
  }

  drawBoards() {
    const { view, told } = this, totals = totalsOf(view.points, told.names.length);
    this.boards.replaceChildren(...boardsFromOwn(told, (name, seat) => {
      const isOwn = seat === told.seat, built = view.lastRound[seat];
      const said = [`${totals[seat]} points`, isOwn ? "" : `${countOf(view.laid[seat], "card")} laid`, view.offers.includes(seat) ? "agrees to end" : ""];
      const section = make("section", isOwn ? { class: "own" } : {}, head(name, ...said));
      const points = view.points.at(-1)?.points[seat];
      if (built) section.append(make("p", { class: "note" }, `Last round: ${points} points${built.hasCalled ? ", called" : ""}`));
      if (built?.layout) section.append(toElement(drawLayout(readLayout(built.layout), sidesOf(built.layout.cards, built.symbols), `${name}: last round`)));
      return section;
    }));
  }
}
