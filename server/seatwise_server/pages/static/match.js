// The viewer of a match page: every step of a finished match, or the positions of a live one as they come.
import { mount } from "./viewer.js";

const SHORTEST_DRAW_MS = 300;
const RETRY_MS = 5_000;
const TRIES = 3;
// A featured match is played from so many steps before its decisive moment; when it is over, the page rests, and shows the next one.
const STEPS_BEFORE = 20;
const REST_MS = 8_000;
const STANDINGS_MS = 12_000;
const element = document.querySelector("#viewer");
const told = document.querySelector("#link-state");
const { next } = element.dataset;

// The page again; on the big screen the standings, and then the next match.
function goOn(ms) {
  setTimeout(() => {
    if (!next) return location.reload();
    document.body.classList.add("between");
    setTimeout(() => location.assign(next), STANDINGS_MS);
  }, ms);
}

// The result stands beside the board, where there is room.
function mountBeside(replay) {
  const isFeatured = "plays" in element.dataset, made = mount(element, replay, { isFeatured });
  if (!isFeatured) made.side.prepend(document.querySelector("#state"));
  else if (replay.chain && !matchMedia("(prefers-reduced-motion: reduce)").matches) made.playFrom((replay.decisive_step ?? 0) - STEPS_BEFORE, () => goOn(REST_MS));
  else if (replay.chain && next) goOn(3 * REST_MS);
  return made;
}

async function showReplay() {
  const response = await fetch(element.dataset.frames);
  if (!response.ok) throw new Error(response.status);
  mountBeside(await response.json());
}

// The steps of a live match by their numbers. A stream begins with the newest one; those before it are loaded beside it.
class LiveSteps {
  constructor(onChange) {
    Object.assign(this, { onChange, first: -1, steps: [], isWhole: false });
  }

  add({ first, frames }) {
    const place = first - this.first;
    if (this.first < 0 || place < 0 || place > this.steps.length) this.begin(first, frames); // also after a lost connection
    else this.steps.splice(place, frames.length, ...frames);
    if (this.isWhole) this.onChange();
  }

  begin(first, frames) {
    Object.assign(this, { first, steps: [...frames], isWhole: first === 0 });
    if (!this.isWhole) this.loadEarlier(TRIES);
  }

  async loadEarlier(tries) {
    const response = await fetch(element.dataset.steps).catch(() => null);
    const { frames } = response?.ok ? await response.json() : { frames: [] };
    const isFound = frames.length >= this.first;
    if (!isFound && tries > 1) return setTimeout(() => this.loadEarlier(tries - 1), RETRY_MS);
    if (isFound) Object.assign(this, { first: 0, steps: [...frames.slice(0, this.first), ...this.steps] });
    this.isWhole = true;
    this.onChange();
  }
}

let viewer = null;

function watchMatch() {
  const replay = { ...JSON.parse(element.dataset.match), viewpoint: "spectator", points: [], ranks: [], endings: [], frames: [] };
  let timer = 0;
  const draw = () => {
    timer = 0;
    const shown = { ...replay, frames: [...steps.steps] };
    if (viewer) return viewer.replace(shown);
    viewer = mountBeside(shown);
    if (!location.hash.startsWith("#step=")) viewer.show(viewer.last, false);
  };
  const steps = new LiveSteps(() => (timer ||= setTimeout(draw, viewer ? SHORTEST_DRAW_MS : 0)));
  const source = new EventSource(element.dataset.live);
  source.onopen = () => (told.textContent = "");
  source.onerror = () => {
    told.textContent = "The match cannot be watched just now. The page tries again.";
    // A browser does not ask again after a refusal. Many pages must not ask again at the same time.
    if (source.readyState === EventSource.CLOSED) setTimeout(watchMatch, RETRY_MS * (1 + Math.random()));
  };
  source.onmessage = (event) => {
    const news = JSON.parse(event.data);
    if (news.frames) steps.add(news);
  };
  source.addEventListener("refused", (event) => {
    source.close();
    told.textContent = JSON.parse(event.data).error.message;
    if (next) goOn(REST_MS);
  });
  source.addEventListener("end", () => {
    source.close();
    told.textContent = "The match is over. The page loads its replay.";
    goOn(1500);
  });
}

if (element.dataset.frames) showReplay().catch(() => {
  told.textContent = "The steps cannot be loaded now. Load the page again.";
  if (next) goOn(REST_MS);
});
else watchMatch();
