// A client of the official TypeScript SDKs, for the fuzzer of clients:
//
//     node ts_client.mjs 1|2 MODULES URL | COMMAND ARGUMENT ...
//
// 1 is `@modelcontextprotocol/sdk`, 2 is `@modelcontextprotocol/client`, and MODULES a node_modules directory. It declares forms,
// sampling and roots, reads at most ten pages of tools, calls a tool twice, and ends.

import { readFileSync } from "node:fs";
import { pathToFileURL } from "node:url";

const [version, modules, ...words] = process.argv.slice(2);
const timeout = 3000; // milliseconds for each request
const options = { capabilities: { elicitation: {}, sampling: {}, roots: {} } };
const info = { name: `ts-${version}`, version: "1" };
const isUrl = words[0].includes("://");

const fillIn = () => ({ action: "decline" });
const sample = ({ params }) => {
  const blocks = params.messages.flatMap(({ content }) => content); // the SDK does not check them
  if (params.tools || params.toolChoice || blocks.some(({ type }) => type.startsWith("tool_"))) {
    throw Object.assign(new Error("tools were not declared"), { code: -32602 });
  }
  return { role: "assistant", model: "none", content: { type: "text", text: "yes" } };
};
const listRoots = () => ({ roots: [{ uri: "file:///srv/fuzz" }] });

async function newClient() {
  if (version === "1") {
    const load = (path) => import(pathToFileURL(`${modules}/@modelcontextprotocol/sdk/dist/esm/${path}`));
    const { Client } = await load("client/index.js");
    const { StreamableHTTPClientTransport } = await load("client/streamableHttp.js");
    const { StdioClientTransport } = await load("client/stdio.js");
    const types = await load("types.js");
    const client = new Client(info, options);
    client.setRequestHandler(types.ElicitRequestSchema, fillIn);
    client.setRequestHandler(types.CreateMessageRequestSchema, sample);
    client.setRequestHandler(types.ListRootsRequestSchema, listRoots);
    return [client, isUrl ? new StreamableHTTPClientTransport(new URL(words[0])) : new StdioClientTransport(command())];
  }
  const root = `${modules}/@modelcontextprotocol/client/`;
  const exported = JSON.parse(readFileSync(`${root}package.json`)).exports;
  const load = (name) => import(pathToFileURL(root + exported[name].import.default));
  const { Client, StreamableHTTPClientTransport } = await load(".");
  const { StdioClientTransport } = await load("./stdio");
  const client = new Client(info, { ...options, versionNegotiation: { mode: "auto" } });
  client.setRequestHandler("elicitation/create", fillIn);
  client.setRequestHandler("sampling/createMessage", sample);
  client.setRequestHandler("roots/list", listRoots);
  return [client, isUrl ? new StreamableHTTPClientTransport(new URL(words[0])) : new StdioClientTransport(command())];
}

const command = () => ({ command: words[0], args: words.slice(1) });

// As an agent would: the next request is another one.
async function attempt(request) {
  try {
    return await request();
  } catch (error) {
    console.error(String(error).slice(0, 200));
    return undefined;
  }
}

const [client, transport] = await newClient();
client.onerror = (error) => console.error(String(error).slice(0, 200));
try {
  await client.connect(transport, { timeout });
} catch (error) {
  console.error(String(error).slice(0, 500));
  process.exit(1);
}
let cursor;
for (let page = 0; page < 10; page += 1) {
  const found = await attempt(() => client.listTools(cursor === undefined ? {} : { cursor }, { timeout }));
  cursor = found?.nextCursor;
  if (cursor === undefined || cursor === null) break;
}
const limit = { timeout };
await attempt(() => (version === "1" ? client.callTool({ name: "sum", arguments: { a: 1 } }, undefined, limit) : client.callTool({ name: "sum", arguments: { a: 1 } }, limit)));
await attempt(() => client.listResources({}, limit));
await attempt(() => client.readResource({ uri: "note:///one" }, limit));
await attempt(() => client.listPrompts({}, limit));
await attempt(() => (version === "1" ? client.callTool({ name: "sum", arguments: { a: 2 } }, undefined, limit) : client.callTool({ name: "sum", arguments: { a: 2 } }, limit)));
await attempt(() => client.close());
process.exit(0);
