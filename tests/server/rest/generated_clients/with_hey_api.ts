import { client } from "./generated/client.gen";
import { createMatch, getMatch, registerBot, watchMatch } from "./generated/sdk.gen";
import type { WatchMatchAnswer } from "./generated/types.gen";

const [base, token, other, finished, live] = process.argv.slice(2);

async function main() {
  client.setConfig({ baseUrl: base as "http://localhost", auth: token });
  const { data: registered } = await registerBot({ body: { bot: "made-by-hey" } });
  const { data: created } = await createMatch({ body: { game: "games/ugo", bots: [registered!.bot.name, other] } });
  const { data: read } = await getMatch({ path: { match: created!.match.name.replace("matches/", "") } });
  console.log("created", read!.match.state, ...read!.match.bots);
  const { data: lines } = await watchMatch({ path: { match: finished }, parseAs: "text" });
  const first: WatchMatchAnswer = JSON.parse((lines as unknown as string).split("\n")[0]);
  console.log("finished", first.match!.state);
  const { data: stream } = await watchMatch({ path: { match: live }, parseAs: "stream" });
  let text = "";
  const decoder = new TextDecoder();
  for await (const chunk of stream as unknown as AsyncIterable<Uint8Array>) {
    const read = (text + decoder.decode(chunk, { stream: true })).split("\n");
    text = read.pop()!;
    for (const item of read.filter(Boolean).map((line): WatchMatchAnswer => JSON.parse(line))) {
      if (item.match) console.log("live", item.match.state);
    }
  }
}

main();
