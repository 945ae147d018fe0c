// The page of a seat: a person plays a match as a bot does.
import { SeatLink } from "./seat_link.js";
import { make, makeButton } from "./seat_parts.js";
import { UbongoSeat } from "./seat_ubongo.js";
import { UgoSeat } from "./seat_ugo.js";

const BOARDS = { ugo: UgoSeat, ubongo: UbongoSeat };
const CLOCK_MS = 250, LEAVE_MS = 1_500;
const element = document.querySelector("#seat");
const told = JSON.parse(element.dataset.seat);
delete element.dataset.seat; // it has the token
told.names[told.seat] = "You";

const state = make("p", { role: "alert", class: "alert", hidden: "" });
const said = make("p", { role: "status", class: "sentence" }, "The page waits for the cards.");
const clock = make("p", { class: "note" });
const board = make("div");
const resign = makeButton("Resign", () => confirmResign());
element.replaceChildren(state, said, clock, board, make("div", { class: "choices" }, resign));

told.say = (text) => (said.textContent = text);
const tellState = (text) => {
  state.hidden = !text;
  state.textContent = text;
  if (text) seat.noteLoss?.();
};
let endsAt = 0, isSure = false;

const link = new SeatLink(told, {
  onState: tellState,
  onUpdate: (update) => {
    if (!update[told.game]) return; // nothing is dealt yet
    endsAt = update.toAct ? performance.now() + update.time.moveMs + update.time.bankMs : 0;
    told.say(seat.update(update));
  },
  onRejected: (rejection) => {
    seat.askAgain();
    told.say(`That move does not count: ${rejection.message}`);
  },
  onMatchEnd: ({ voidReason }) => {
    endsAt = 0;
    resign.disabled = true;
    leave(voidReason ? `The match is void: ${voidReason}.` : "The match is over. The page shows its result.");
  },
});
const seat = new BOARDS[told.game](board, told, (...moves) => link.submit(...moves));

function leave(text) {
  told.say(text);
  setTimeout(() => location.assign(`/${told.match}`), LEAVE_MS);
}

function confirmResign() {
  if (isSure) {
    resign.disabled = true;
    link.resign();
    leave("You have given the match up. The page shows how the others play on.");
  } else {
    isSure = true;
    resign.textContent = "Resign: press again to give the match up";
  }
}

setInterval(() => {
  const left = Math.max(0, Math.ceil((endsAt - performance.now()) / 1000));
  clock.textContent = endsAt ? `Time left: ${left} s` : "\u00a0";
}, CLOCK_MS);
