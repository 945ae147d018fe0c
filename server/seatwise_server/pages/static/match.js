// The viewer of a match page: every step of a finished match, or the positions of a live one as they come.
import { mount } from "./viewer.js";

const SHORTEST_DRAW_MS = 300;
const RETRY_MS = 5_000;
const element = document.querySelector("#viewer");
const told = document.querySelector("#link-state");

async function showReplay() {
  const response = await fetch(element.dataset.frames);
  if (!response.ok) throw new Error(response.status);
  mount(element, await response.json());
}

function watchMatch() {
  const replay = { ...JSON.parse(element.dataset.match), viewpoint: "spectator", points: [], ranks: [], endings: [], frames: [] };
  let viewer = null, timer = 0;
  const draw = () => {
    timer = 0;
    if (viewer) viewer.replace({ ...replay });
    else {
      viewer = mount(element, replay);
      viewer.show(viewer.last, false);
    }
  };
  const source = new EventSource(element.dataset.live);
  source.onopen = () => (told.textContent = "");
  source.onerror = () => {
    told.textContent = "The match cannot be watched just now. The page tries again.";
    // A browser does not ask again after a refusal. Many pages must not ask again at the same time.
    if (source.readyState === EventSource.CLOSED) setTimeout(watchMatch, RETRY_MS * (1 + Math.random()));
  };
  source.onmessage = (event) => {
    const news = JSON.parse(event.data);
    if (!news.frames) return;
    replay.frames = [...replay.frames, ...news.frames];
    timer ||= setTimeout(draw, viewer ? SHORTEST_DRAW_MS : 0);
  };
  source.addEventListener("refused", (event) => {
    source.close();
    told.textContent = JSON.parse(event.data).error.message;
  });
  source.addEventListener("end", () => {
    source.close();
    told.textContent = "The match is over. The page loads its replay.";
    setTimeout(() => location.reload(), 1500);
  });
}

if (element.dataset.frames) showReplay().catch(() => (told.textContent = "The steps cannot be loaded now. Load the page again."));
else watchMatch();
