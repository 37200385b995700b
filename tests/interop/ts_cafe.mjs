// The TypeScript SDKs with URIs outside ASCII and with forms of zod:
//
//     node ts_cafe.mjs sdk MODULES URL       the official client of `@modelcontextprotocol/sdk` 1.32, with our server
//     node ts_cafe.mjs legacy MODULES URL    the official client 2, `@modelcontextprotocol/client`, in a session
//     node ts_cafe.mjs modern MODULES URL    the same in 2026-07-28
//     node ts_cafe.mjs server MODULES        the server of 1.32, over stdio
//
// MODULES is a node_modules directory. A client prints one JSON report of what it received. It checks nothing: that is for the test that
// reads the report.

import { readFileSync } from "node:fs";
import { pathToFileURL } from "node:url";

const [which, modules, url] = process.argv.slice(2);
const info = { name: "ts", version: "1" };
const load = (path) => import(pathToFileURL(`${modules}/${path}`));
const sdk = (path) => load(`@modelcontextprotocol/sdk/dist/esm/${path}`);
const report = { questions: [] };

const failure = (promise) => promise.then((value) => ({ value }), ({ code, message }) => ({ code, message }));

function answer({ params }) {
  report.questions.push(params);
  return { action: "accept", content: { dish: "soup", count: 2 } };
}

async function sdkClient() {
  const { Client } = await sdk("client/index.js");
  const { StreamableHTTPClientTransport } = await sdk("client/streamableHttp.js");
  const { ElicitRequestSchema } = await sdk("types.js");
  const client = new Client(info, { capabilities: { elicitation: { form: {} }, roots: {} } });
  client.setRequestHandler(ElicitRequestSchema, answer);
  await client.connect(new StreamableHTTPClientTransport(new URL(url)));
  return client;
}

async function client2() {
  // It is for `import` only, which ignores NODE_PATH: so by its file.
  const root = `${modules}/@modelcontextprotocol/client/`;
  const exported = JSON.parse(readFileSync(`${root}package.json`)).exports["."];
  const { Client, StreamableHTTPClientTransport } = await import(pathToFileURL(root + exported.import.default));
  const mode = which === "modern" ? { pin: "2026-07-28" } : "legacy";
  const client = new Client(info, { capabilities: { elicitation: { form: {} } }, versionNegotiation: { mode } });
  client.setRequestHandler("elicitation/create", answer);
  await client.connect(new StreamableHTTPClientTransport(new URL(url)));
  report.era = client.getProtocolEra();
  return client;
}

async function use(client) {
  const { resources } = await client.listResources();
  report.resources = resources.map(({ uri }) => uri);
  // As a program writes a URI that it has parsed.
  const hrefs = resources.map(({ uri }) => new URL(uri).href);
  report.hrefs = hrefs;
  report.read = [];
  for (const uri of [...report.resources, ...hrefs]) {
    report.read.push((await client.readResource({ uri })).contents[0].text);
  }
  report.missing = await failure(client.readResource({ uri: "note://caf%C3%89" }));
  report.outside = await failure(client.readResource({ uri: "note://café/%2E%2E/list" }));
  const uri = `note://café/${encodeURIComponent("naïve day")}/list`;
  report.filled = (await client.readResource({ uri })).contents[0].text;
  const ref = { type: "ref/resource", uri: "note://caf%C3%A9/{day}/list" };
  report.completed = (await client.complete({ ref, argument: { name: "day", value: "m" } })).completion.values;
  report.order = await client.callTool({ name: "order", arguments: {} });
  await client.close();
}

async function serve() {
  const { McpServer } = await sdk("server/mcp.js");
  const { StdioServerTransport } = await sdk("server/stdio.js");
  const { z } = await load("zod/index.js");
  const server = new McpServer({ name: "ts-café", version: "1" });
  const contents = (uri, text) => ({ contents: [{ uri: uri.href, text }] });
  server.registerResource("coffee", "note://café", {}, (uri) => contents(uri, "Open until six."));
  server.registerResource("tea", "note://caf%C3%A9/tea", {}, (uri) => contents(uri, "With milk."));
  const form = z.object({
    dish: z.string(),
    id: z.uuid(),
    note: z.string().nullable(),
    count: z.int().min(1).max(8).nullable().optional(),
    size: z.enum(["small", "large"]).nullable().default(null),
    price: z.number().default(1),
    at: z.iso.datetime().optional(),
    warm: z.boolean().nullish(),
  });
  server.registerTool("order", { description: "Ask for an order." }, async () => {
    const requestedSchema = z.toJSONSchema(form, { io: "input" });
    const asked = await server.server.elicitInput({ message: "What would you like?", requestedSchema });
    return { content: [{ type: "text", text: JSON.stringify(asked) }] };
  });
  await server.connect(new StdioServerTransport());
}

if (which === "server") {
  await serve();
} else {
  await use(which === "sdk" ? await sdkClient() : await client2());
  console.log(JSON.stringify(report));
}
