// A listener of `@modelcontextprotocol/client` 2, told of changes at another worker:
//
//     node ts_listen.mjs legacy MODULES URL OTHER    in a session at URL
//     node ts_listen.mjs modern MODULES URL OTHER    by `listen()`
//
// It calls the tool `change` at OTHER. Prints one JSON report of what it was told at URL, and of the tools there afterwards.

import { readFileSync } from "node:fs";
import { pathToFileURL } from "node:url";

const [which, modules, url, other] = process.argv.slice(2);
const root = `${modules}/@modelcontextprotocol/client/`;
const exported = JSON.parse(readFileSync(`${root}package.json`)).exports["."];
const { Client, StreamableHTTPClientTransport } = await import(pathToFileURL(root + exported.import.default));
const mode = which === "modern" ? { pin: "2026-07-28" } : "legacy";

async function connect(where) {
  const client = new Client({ name: "ts", version: "1" }, { versionNegotiation: { mode } });
  await client.connect(new StreamableHTTPClientTransport(new URL(where)));
  return client;
}

const listener = await connect(url);
const report = { era: listener.getProtocolEra(), told: [] };
const uri = "x:1";
const both = new Promise((resolve) => {
  const note = (text) => report.told.push(text) === 2 && resolve();
  listener.setNotificationHandler("notifications/tools/list_changed", () => note("tools"));
  listener.setNotificationHandler("notifications/resources/updated", ({ params }) => note(params.uri));
});
if (which === "modern") await listener.listen({ toolsListChanged: true, resourceSubscriptions: [uri] });
else await listener.subscribeResource({ uri });

const speaker = await connect(other);
await speaker.callTool({ name: "change", arguments: { name: which } });
await both;
report.tools = (await listener.listTools()).tools.map(({ name }) => name);
await speaker.close();
await listener.close();
console.log(JSON.stringify(report));
process.exit(0);
