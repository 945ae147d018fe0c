// Draws the pictures of the rules with the drawings of the viewer. Prints them as JSON: file name to SVG.
import { group, label, picture, shape, toMarkup } from "./shapes.js";
import { drawUgoCard, drawUgoKingdom } from "./ugo.js";
import { cellsOf, drawLayout, drawSymbol, drawTile } from "./ubongo.js";

const WIDTH = 400; // a phone shows that without making it smaller

const COLOURS = [["R8", "red hills"], ["B6", "blue lakes"], ["G4", "green meadows"], ["Y2", "yellow fields"], ["K0", "grey mountains"]];

function drawCards() {
  const cards = COLOURS.map(([card, name], place) => [drawUgoCard(card, 26 + place * 80, 4), ...name.split(" ").map((word, line) => label(41 + place * 80, 64 + line * 15, word, "name"))]);
  return picture(WIDTH, 86, "The five colours", cards.flat());
}

// A trick with the winning card framed.
function drawTrick(x, cards, winner, text) {
  const played = cards.map((card, place) => [
    place === winner ? [shape("rect", { x: place * 37 - 3, y: 1, width: 36, height: 50, rx: 6, class: "slot won" })] : [],
    drawUgoCard(card, place * 37, 4),
  ]);
  return group(x, 0, "", played.flat(2), label(52, 70, text, "small"));
}

const drawTricks = () =>
  picture(WIDTH, 78, "Three tricks",
    drawTrick(8, ["B3", "G6", "R2"], 1, "the highest wins"),
    drawTrick(148, ["B3", "G7", "B7"], 2, "equal: the led colour"),
    drawTrick(288, ["B3", "G8", "R8"], 1, "equal: the first"));

const KINGDOM = { sections: [["G3", "G7"], ["R4", "R0"], ["B5"], ["K2", "K6"], ["Y1"]], farmers: 5 };
const drawKingdom = () => picture(WIDTH, 164, "A kingdom", drawUgoKingdom(KINGDOM, 42, 4, [7, 0, 5, 6, -20]));

const drawSymbols = () =>
  picture(WIDTH, 52, "The eight symbols",
    [..."ABCDEFGH"].map((letter, place) => [group(25 + place * 50, 14, "tile", drawSymbol(letter, 0, 0)), label(25 + place * 50, 44, letter, "name")]).flat());

// A drawing in the middle of a field as wide as the other pictures.
function centre(drawn) {
  const [, , width, height] = drawn.attributes.viewBox.split(" ").map(Number);
  return picture(WIDTH, height, drawn.attributes["aria-label"], group((WIDTH - width) / 2, 0, "", ...drawn.inside));
}

// Two cards at their places, centred in a field of their own.
function drawPair(x, other, symbols, kind, first = "ABCDEF") {
  const tiles = [drawTile(["", 0, 0, 0], first, kind), drawTile(["", ...other], symbols, kind)];
  const rows = [...cellsOf(["", 0, 0, 0]), ...cellsOf(["", ...other])].map(([, y]) => y);
  return group(x, 12 - Math.min(...rows) * 20, "", tiles);
}

const drawFits = () =>
  picture(WIDTH, 144, "Cards that fit",
    drawPair(20, [2, 1, 0], "DGFHAE", ""), drawPair(165, [0, 3, 0], "EFABGH", ""), drawPair(270, [2, 0, 1], "GHACBD", ""));

const drawWrong = () =>
  picture(WIDTH, 124, "Cards that do not fit",
    drawPair(6, [2, 2, 0], "FGAHBE", "wrong"), drawPair(108, [2, 1, 0], "FGDHAE", "wrong"),
    drawPair(210, [2, 0, 0], "BGDHCA", "wrong"), drawPair(312, [2, 0, 0], "BGDHFA", "wrong"));

export const pictures = (layout) => ({
  "ugo-cards.svg": toMarkup(drawCards()),
  "ugo-tricks.svg": toMarkup(drawTricks()),
  "ugo-kingdom.svg": toMarkup(drawKingdom()),
  "ubongo-symbols.svg": toMarkup(drawSymbols()),
  "ubongo-fit.svg": toMarkup(drawFits()),
  "ubongo-wrong.svg": toMarkup(drawWrong()),
  "ubongo-layout.svg": toMarkup(centre(drawLayout(layout.layout, layout.sides, "A layout of seven cards"))),
});

console.log(JSON.stringify(pictures(JSON.parse(process.argv[2]))));
