// Keeps a page up to date: it loads the page again from time to time, and replaces the sections that have changed.
const page = document.querySelector("main[data-refresh]");
const every = page ? Number(page.dataset.refresh) * 1000 : 0;

function loadPage() {
  return new Promise((resolve, reject) => {
    const request = new XMLHttpRequest();
    request.responseType = "document";
    request.timeout = 10_000;
    request.onload = () => (request.status === 200 ? resolve(request.response) : reject(new Error(request.status)));
    request.onerror = request.ontimeout = reject;
    request.open("GET", location.pathname + location.search);
    request.send();
  });
}

const wideParts = (section) => [...section.querySelectorAll(".wide, figure")];

// Wide tables stay where a person has scrolled them to.
function replaceSection(old, newer) {
  const scrolled = wideParts(old).map((each) => each.scrollLeft);
  old.replaceWith(document.adoptNode(newer));
  wideParts(newer).forEach((each, place) => (each.scrollLeft = scrolled[place] ?? 0));
}

function replaceSections(loaded) {
  if (loaded.querySelector("#viewer") && !document.querySelector("#viewer")) location.reload(); // there is a match to play now
  for (const old of document.querySelectorAll("[data-live][id]")) {
    const newer = loaded.getElementById(old.id);
    // A section with the focus stays as it is: a person reads it or is about to follow a link.
    if (newer && !old.contains(document.activeElement) && !old.isEqualNode(newer)) {
      replaceSection(old, newer);
    }
  }
}

async function refresh() {
  if (!document.hidden) {
    try {
      replaceSections(await loadPage());
    } catch {
      // The server is away for a moment: the page stays as it is, and asks again.
    }
  }
  setTimeout(refresh, every);
}

if (every) setTimeout(refresh, every);
