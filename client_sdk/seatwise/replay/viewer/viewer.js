// Steps through a match: buttons, keys, a slider, a list of moves. The step is in the URL, so that a link shows the same.
//
//   import { mount } from "./viewer.js";
//   const viewer = mount(document.querySelector("#match"), replay);   // what MatchReplay.to_json() returns
//   viewer.replace(longerReplay);                                      // a live match has more steps
import { HOSTED } from "./hosted.js";
import { drawIn, formatSpan, shape, toElement } from "./shapes.js";
import { UBONGO } from "./ubongo.js";
import { UGO } from "./ugo.js";

// Games of our own. Those from outside have drawings in their frames.
const DRAWN = { ugo: UGO, ubongo: UBONGO };
const STEP_MS = 900;
const SPEEDS = [1, 2, 5];
// Browsers refuse more than a hundred changes of the address in half a minute, so it follows when the step rests.
const LINK_AFTER_MS = 300;
const ICONS = {
  first: "M3 2v12M13 2L5 8l8 6z", back: "M12 2L4 8l8 6z", next: "M4 2l8 6-8 6z", last: "M13 2v12M3 2l8 6-8 6z",
};

function make(name, attributes = {}, ...inside) {
  const element = document.createElement(name);
  for (const [key, value] of Object.entries(attributes)) element.setAttribute(key, value);
  element.append(...inside);
  return element;
}

const icon = (path) =>
  toElement({ name: "svg", attributes: { viewBox: "0 0 16 16", class: "icon", "aria-hidden": "true" }, inside: [{ name: "path", attributes: { d: path }, inside: [] }] });

// The frame as one viewpoint sees it: "all", "spectator", or the number of a seat.
function seenFrom(viewpoint, frame) {
  if (viewpoint === "all") return frame;
  const only = (values) => values.map((value, seat) => (seat === viewpoint ? value : null));
  const moves = frame.moves.map((move) => (move.seat === viewpoint ? move : { ...move, charged_ms: null }));
  const hints = frame.hints.map((hint, seat) => (seat === viewpoint ? hint : ""));
  const isOther = frame.is_other_than_hint && moves[0].seat === viewpoint;
  return { ...frame, own: only(frame.own), times: only(frame.times), moves, hints, is_other_than_hint: isOther, at_ms: null };
}

// Points so far, with those of the round that is played.
const totalsOf = ({ points, table }) => points.map((each, seat) => each + (table.running?.[seat] ?? 0));

// A line for each seat over all steps, the rounds, and where the match turns.
function drawCurve(frames, starts, names) {
  const last = Math.max(1, frames.length - 1), totals = frames.map(totalsOf), all = [0, ...totals.flat()];
  const least = Math.min(...all), most = Math.max(...all), high = (value) => (96 - (92 * (value - least)) / Math.max(1, most - least)).toFixed(1);
  const lines = names.map((_, seat) => shape("polyline", { class: `curve s${seat % 8}`, points: totals.map((each, step) => `${step},${high(each[seat])}`).join(" ") }));
  const rounds = shape("path", { class: "rounds", d: starts.map((step) => `M${step} 0v100`).join("") });
  const turns = shape("path", { class: "turns", d: frames.map((frame, step) => (frame.turn ? `M${step} 88v12` : "")).join("") });
  return shape("svg", { viewBox: `0 0 ${last} 100`, preserveAspectRatio: "none", class: most > least ? "drawn" : "drawn flat", "aria-hidden": "true" }, rounds, turns, lines);
}

// Change a text only where it differs: each change costs a layout.
function write(element, text) {
  if (element.textContent !== text) element.textContent = text;
}

// The place of one seat, which stays while its content changes.
function makeBoard(name, seat) {
  const parts = { who: "who", state: "state", points: "points", running: "running" };
  for (const name of Object.keys(parts)) parts[name] = make("span", { class: name });
  const swatch = make("span", { class: `swatch s${seat % 8}` }), title = make("h3", { title: name }, swatch, ...Object.values(parts));
  const drawn = make("div"), times = make("p", { class: "times" });
  return { ...parts, drawn, times, section: make("section", {}, title, drawn, times) };
}

class Viewer {
  constructor(element, replay, { isFeatured = false } = {}) {
    Object.assign(this, { replay, isFeatured });
    this.step = -1;
    this.timer = 0;
    this.viewpoint = replay.viewpoint;
    this.build(element);
    this.readLink();
  }

  // The page

  build(element) {
    this.element = element;
    this.facts = make("h2");
    this.sentence = make("p", { role: "status", class: "sentence" });
    this.turn = make("p", { class: "turn" });
    this.hint = make("p", { class: "hint" });
    this.table = make("div", { class: "table" });
    this.seats = this.replay.names.map(makeBoard);
    this.boards = make("div", { class: "boards", "data-seats": this.seats.length }, ...this.seats.map(({ section }) => section));
    this.opened = { section: make("details", { class: "opened", open: "" }), title: make("summary"), drawn: make("div") };
    this.opened.section.append(this.opened.title, this.opened.drawn);
    this.moves = make("ol", { class: "moves", tabindex: "0", "aria-label": "Moves" });
    const told = make("div", { class: "told", tabindex: "0", role: "group", "aria-label": "This step" }, this.facts, this.turn, this.sentence, this.hint);
    const stage = make("div", { class: "stage" }, make("div", { class: "top" }, told, this.table), this.boards, this.opened.section);
    this.side = make("div", { class: "side" }, make("h2", {}, "Moves"), this.moves);
    element.classList.add("viewer", ...(this.isFeatured ? ["featured"] : []));
    element.replaceChildren(make("div", { class: "columns" }, stage, this.side), this.buildBar());
    addEventListener("hashchange", () => this.readLink());
    addEventListener("keydown", (event) => this.onKey(event));
  }

  buildBar() {
    const button = (name, text, go) => {
      const made = make("button", { type: "button", class: name, "aria-label": text, title: text }, icon(ICONS[name]));
      made.addEventListener("click", go);
      return made;
    };
    this.playButton = make("button", { type: "button", class: "play" }, "Play");
    this.playButton.addEventListener("click", () => this.togglePlay());
    this.slider = make("input", { type: "range", min: "0", value: "0", "aria-label": "Step" });
    this.slider.addEventListener("input", () => this.show(Number(this.slider.value)));
    this.count = make("output", { class: "count" });
    this.curve = make("div", { class: "over" });
    return make("div", { class: "bar", role: "group", "aria-label": "Replay" },
      button("first", "First step", () => this.show(0)), button("back", "One step back", () => this.show(this.step - 1)),
      this.playButton,
      button("next", "One step on", () => this.show(this.step + 1)), button("last", "Last step", () => this.show(this.last)),
      make("div", { class: "track" }, this.curve, this.slider), this.count, this.buildOptions());
  }

  buildOptions() {
    this.rounds = make("select");
    this.rounds.addEventListener("change", () => this.show(Number(this.rounds.value)));
    this.speed = make("select", {}, ...SPEEDS.map((each) => make("option", { value: each }, `${each}×`)));
    this.speed.addEventListener("change", () => this.timer && (this.togglePlay(), this.togglePlay()));
    this.viewpoints = make("select", {}, make("option", { value: "all" }, "all hands"), make("option", { value: "spectator" }, "no hand"),
      ...this.replay.names.map((name, seat) => make("option", { value: seat }, name)));
    this.viewpoints.addEventListener("change", () => this.changeViewpoint(this.viewpoints.value));
    const keys = make("p", { class: "keys" }, "Keys: left and right step, page up and page down change the round, home and end jump, space plays. While one of the buttons has the focus, V changes the viewpoint.");
    const seen = this.replay.viewpoint === "all" ? [make("label", {}, "See ", this.viewpoints)] : [];
    this.link = make("a", {}, "Link to this step");
    const decisive = this.replay.decisive_step ? [make("a", { href: `#step=${this.replay.decisive_step}` }, "Decisive moment")] : [];
    const exact = make("input", { type: "checkbox" });
    exact.addEventListener("change", () => this.useExactTimes(exact.checked));
    return make("details", { class: "options" }, make("summary", {}, "Options"),
      make("div", {}, ...seen, make("label", {}, "Round ", this.rounds), make("label", {}, "Speed ", this.speed), make("label", {}, exact, " Times to the millisecond"), this.link, ...decisive), keys);
  }

  fill() {
    const { frames } = this.replay;
    this.last = frames.length - 1;
    this.slider.max = this.last;
    this.listSteps(frames);
    const starts = frames.flatMap((frame, step) => (frame.kind === "dealt" || frame.kind === "round" ? [[frame.table.round, step]] : []));
    this.rounds.replaceChildren(...starts.map(([round, step]) => make("option", { value: step }, round ?? "1")));
    this.starts = starts.map(([, step]) => step);
    drawIn(this.curve, drawCurve(frames, this.starts, this.replay.names));
  }

  // A live match gets longer: what is listed already stays.
  listSteps(frames) {
    const { viewpoint, listed } = this;
    const isLonger = listed && listed.viewpoint === viewpoint && listed.frames.every((frame, step) => frame === frames[step]);
    if (!isLonger) this.moves.replaceChildren();
    const known = this.moves.children.length;
    this.moves.append(...frames.slice(known).map((frame, place) => this.listStep(seenFrom(viewpoint, frame), known + place)));
    this.listed = { viewpoint, frames };
  }

  listStep(frame, step) {
    const button = make("button", { type: "button", tabindex: "-1" }, make("span", {}, frame.says, frame.turn ? make("b", {}, ` ${frame.turn}`) : ""));
    if (frame.is_other_than_hint) button.append(make("span", { class: "other" }, "not the hint"));
    const charged = frame.moves.map((move) => move.charged_ms).filter((ms) => ms !== null);
    if (charged.length) button.append(make("span", { class: "charge" }, this.formatTime(Math.max(...charged))));
    button.addEventListener("click", () => this.show(step));
    return make("li", frame.kind === "round" ? { class: "round" } : {}, button);
  }

  // One step

  show(step, keepsLink = true) {
    const next = Math.max(0, Math.min(this.last, step));
    if (next === this.step) return;
    this.moves.children[this.step]?.firstChild.removeAttribute("aria-current");
    this.moves.children[this.step]?.firstChild.setAttribute("tabindex", "-1");
    this.step = next;
    this.draw();
    if (keepsLink) this.keepLink();
  }

  draw() {
    const frame = seenFrom(this.viewpoint, this.replay.frames[this.step]);
    const drawing = DRAWN[this.replay.game] ?? HOSTED;
    const isDecisive = this.step > 0 && this.step === this.replay.decisive_step;
    write(this.facts, `${isDecisive ? "Decisive moment: " : ""}${drawing.describeFacts(frame)}`);
    this.sentence.textContent = frame.says;
    write(this.turn, frame.turn ?? "");
    write(this.hint, frame.hints.flatMap((hint, seat) => (hint ? [`For ${this.replay.names[seat]}: ${hint}.`] : [])).join(" "));
    const start = this.starts.filter((each) => each <= this.step).at(-1) ?? 0;
    const steps = this.replay.frames.slice(start, this.step + 1).map((each) => seenFrom(this.viewpoint, each));
    this.table.classList.toggle("outside", drawing === HOSTED);
    drawIn(this.table, drawing.drawTable(frame, this.replay.names, steps));
    this.seats.forEach((board, seat) => this.drawBoard(board, frame, seat, drawing));
    this.drawOpened(drawing);
    this.rounds.value = start;
    this.markStep(frame);
    document.documentElement.dataset.step = this.step;
  }

  drawBoard(board, frame, seat, drawing) {
    const name = this.replay.names[seat], isAsked = frame.asked.includes(seat), times = frame.times[seat];
    const left = frame.left[seat].toLowerCase().replaceAll("_", " ");
    board.section.classList.toggle("asked", isAsked);
    write(board.who, name);
    const isOutside = drawing === HOSTED; // such a game counts its points at the end, or draws them
    const points = isOutside ? (frame.kind === "finished" ? this.replay.points[seat] : undefined) : frame.points[seat];
    const isWon = frame.kind === "finished" && this.replay.ranks[seat] === 1, running = frame.table.running?.[seat];
    board.section.classList.toggle("won", isWon);
    write(board.state, left || (isWon ? "wins" : isAsked ? "to move" : ""));
    write(board.points, points === undefined ? "" : `${points} points`);
    write(board.running, running && !isOutside ? `${running > 0 ? "+" : "\u2212"}${Math.abs(running)} now` : "");
    write(board.times, times ? this.describeTimes(times) : "");
    drawIn(board.drawn, drawing.drawSeat(frame, seat, name));
  }

  // In a live match, the hands that the rules have opened last.
  drawOpened(drawing) {
    const opened = this.replay.frames.slice(0, this.step + 1).findLast((frame) => frame.opened?.length)?.opened ?? [];
    this.opened.section.hidden = !opened.length;
    if (this.opened.section.hidden) return;
    write(this.opened.title, `Hands that are open now: round ${opened.map(({ round }) => round).join(" and ")}`);
    const hands = opened.flatMap(({ round, hands }) => hands.map((hand, seat) => ({ round, name: this.replay.names[seat], hand })));
    drawIn(this.opened.drawn, drawing.drawOpened(hands, opened.length > 1));
  }

  // Milliseconds are for those who ask for them.
  formatTime(ms) {
    return this.isExact ? formatSpan(ms) : ms < 100 ? "" : `${(ms / 1000).toFixed(ms < 9_950 ? 1 : 0)} s`;
  }

  useExactTimes(isExact) {
    Object.assign(this, { isExact, listed: null });
    this.fill();
    this.draw();
  }

  describeTimes(times) {
    const said = [`${this.formatTime(times.bank_ms) || "0 s"} left`, `thought ${this.formatTime(times.used_ms) || "0 s"}`];
    if (this.isExact) said.push(`longest ${formatSpan(times.longest_ms)}`);
    if (times.strikes) said.push(`time-outs: ${times.strikes}`);
    if (times.rejections) said.push(`illegal moves: ${times.rejections}`);
    return said.join(" · ");
  }

  markStep(frame) {
    const { moves } = this, current = moves.children[this.step];
    current.firstChild.setAttribute("aria-current", "step");
    current.firstChild.setAttribute("tabindex", "0"); // one stop of the Tab key, not hundreds
    this.slider.value = this.step;
    this.slider.setAttribute("aria-valuetext", `step ${this.step} of ${this.last}: ${frame.says}`);
    write(this.count, `${this.step} / ${this.last}`);
    this.link.setAttribute("href", this.linkToStep());
    // Places are read after all changes: each reading after a change lays the page out once more.
    const top = current.offsetTop, height = moves.clientHeight, hidden = top - moves.scrollTop;
    if (hidden < 0 || hidden + current.offsetHeight > height) moves.scrollTop = top - height / 4;
  }

  // Links, viewpoints, keys, play

  linkToStep() {
    return `#step=${this.step}${this.viewpoint === this.replay.viewpoint ? "" : `&see=${this.viewpoint}`}`;
  }

  keepLink() {
    clearTimeout(this.linkTimer);
    if (!this.isFeatured) this.linkTimer = setTimeout(() => history.replaceState(null, "", this.linkToStep()), LINK_AFTER_MS);
  }

  readLink() {
    const named = new URLSearchParams(this.isFeatured ? "" : location.hash.slice(1));
    if (this.step >= 0 && !named.has("step")) return; // a link to another place of the page
    if (this.replay.viewpoint === "all") this.setViewpoint(named.get("see") ?? "all");
    this.fill();
    const step = Number(named.get("step"));
    this.step = -1;
    this.show(named.has("step") && Number.isInteger(step) ? step : this.replay.decisive_step ?? 0, false);
  }

  setViewpoint(text) {
    const known = [...this.viewpoints.options].some((option) => option.value === text) ? text : "all";
    this.viewpoints.value = known;
    this.viewpoint = /^\d+$/.test(known) ? Number(known) : known;
  }

  changeViewpoint(text) {
    this.setViewpoint(text);
    this.fill();
    this.draw();
    this.keepLink();
  }

  changeRound(by) {
    const place = this.starts.filter((each) => each <= this.step).length - 1;
    const isInside = by < 0 && this.step > this.starts[place];
    this.show(this.starts[place + (isInside ? 0 : by)] ?? (by > 0 ? this.last : 0));
  }

  onKey(event) {
    const isInside = this.element.contains(event.target);
    const isElsewhere = !isInside && (this.isFeatured || event.target !== document.body); // a table that scrolls needs its keys
    const typed = event.target.closest?.("input:not([type=range]), select, textarea");
    if (event.ctrlKey || event.metaKey || event.altKey || typed || isElsewhere) return;
    const isPressed = event.key === " " && event.target.closest?.("button, summary, a");
    const isSlid = event.target === this.slider && event.key !== " " && event.key.toLowerCase() !== "v";
    const go = this.keys()[event.key.length === 1 ? event.key.toLowerCase() : event.key];
    const isLoneLetter = event.key.toLowerCase() === "v" && !isInside; // speech input types letters
    if (!go || isPressed || isSlid || isLoneLetter) return;
    event.preventDefault();
    go();
  }

  keys() {
    const places = [...this.viewpoints.options].map((option) => option.value);
    const nextViewpoint = () => this.changeViewpoint(places[(places.indexOf(String(this.viewpoint)) + 1) % places.length]);
    return {
      ArrowRight: () => this.show(this.step + 1), ArrowLeft: () => this.show(this.step - 1),
      Home: () => this.show(0), End: () => this.show(this.last),
      PageDown: () => this.changeRound(1), PageUp: () => this.changeRound(-1),
      " ": () => this.togglePlay(), v: () => this.replay.viewpoint === "all" && nextViewpoint(),
    };
  }

  togglePlay() {
    clearInterval(this.timer);
    this.timer = this.timer ? 0 : setInterval(() => this.playOn(), STEP_MS / Number(this.speed.value));
    if (this.timer && this.step === this.last) this.show(0);
    this.playButton.textContent = this.timer ? "Pause" : "Play";
    this.sentence.setAttribute("aria-live", this.timer ? "off" : "polite"); // a reader could not keep up
  }

  playOn() {
    if (this.step < this.last) return this.show(this.step + 1);
    this.togglePlay();
    this.onEnd?.();
  }

  // Plays by itself, as a featured match does. A person may stop it.
  playFrom(step, onEnd) {
    this.onEnd = onEnd;
    this.show(step, false);
    this.togglePlay();
  }

  replace(replay) {
    const isAtEnd = this.step === this.last;
    this.replay = replay;
    this.fill();
    if (isAtEnd) this.show(this.last, false);
    else this.markStep(this.replay.frames[this.step]);
  }
}

// Show a match in this element. Returns the viewer: `show(step)`, `replace(replay)`. A featured one follows no link and plays by itself.
export const mount = (element, replay, options) => new Viewer(element, replay, options);
