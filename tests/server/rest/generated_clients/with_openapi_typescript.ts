import createClient from "openapi-fetch";
import type { components, paths } from "./schema";

type Item = components["schemas"]["WatchMatchAnswer"];
const [base, token, other, finished, live] = process.argv.slice(2);

async function main() {
  const client = createClient<paths>({ baseUrl: base, headers: { authorization: `Bearer ${token}` } });
  const { data: registered } = await client.POST("/v1/bots", { body: { bot: "made-by-fetch" } });
  const bots = [registered!.bot.name, other];
  const { data: created } = await client.POST("/v1/matches", { body: { game: "games/ugo", bots } });
  const match = created!.match.name.replace("matches/", "");
  const { data: read } = await client.GET("/v1/matches/{match}", { params: { path: { match } } });
  console.log("created", read!.match.state, ...read!.match.bots);
  const watch = (match: string) => ({ params: { path: { match } } });
  const { data: lines } = await client.GET("/v1/matches/{match}:watch", { ...watch(finished), parseAs: "text" });
  const first: Item = JSON.parse((lines as unknown as string).split("\n")[0]);
  console.log("finished", first.match!.state);
  const { data: stream } = await client.GET("/v1/matches/{match}:watch", { ...watch(live), parseAs: "stream" });
  for await (const item of items(stream as unknown as ReadableStream<Uint8Array>)) {
    if (item.match) console.log("live", item.match.state);
  }
}

async function* items(stream: ReadableStream<Uint8Array>): AsyncGenerator<Item> {
  let rest = "";
  const decoder = new TextDecoder();
  for await (const chunk of stream as unknown as AsyncIterable<Uint8Array>) {
    const lines = (rest + decoder.decode(chunk, { stream: true })).split("\n");
    rest = lines.pop()!;
    for (const line of lines) if (line) yield JSON.parse(line);
  }
}

main();
