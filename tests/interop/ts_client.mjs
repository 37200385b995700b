// The official TypeScript client (`@modelcontextprotocol/sdk`), told by its command line what to do with a server:
//
//     node ts_client.mjs MODULES URL TRANSPORT SCENE
//
// MODULES is a node_modules directory, TRANSPORT is `http`, `sse` or `ws`, and SCENE one of those below. Prints one JSON report of
// what it was answered and told. It checks nothing: that is for the test that reads the report.

import { createRequire } from "node:module";
import { pathToFileURL } from "node:url";

const [modules, url, transportName, scene] = process.argv.slice(2);
const load = (path) => import(pathToFileURL(`${modules}/@modelcontextprotocol/sdk/dist/esm/${path}`));

const { Client } = await load("client/index.js");
const { StreamableHTTPClientTransport } = await load("client/streamableHttp.js");
const { SSEClientTransport } = await load("client/sse.js");
const { WebSocketClientTransport } = await load("client/websocket.js");
const types = await load("types.js");

if (transportName === "ws") globalThis.WebSocket = createRequire(`${modules}/`)("ws").WebSocket;

const report = { progress: [], notifications: [], questions: [], requests: [], errors: [] };

// What goes over the wire, seen from the client.
async function recordingFetch(target, init = {}) {
  const headers = new Headers(init.headers);
  const response = await fetch(target, init);
  report.requests.push({
    verb: init.method ?? "GET",
    session: headers.get("mcp-session-id"),
    version: headers.get("mcp-protocol-version"),
    lastEventId: headers.get("last-event-id"),
    status: response.status,
  });
  return response;
}

function newTransport(options = {}) {
  const where = new URL(url);
  if (transportName === "ws") return new WebSocketClientTransport(where);
  return transportName === "sse"
    ? new SSEClientTransport(where, { fetch: recordingFetch, ...options })
    : new StreamableHTTPClientTransport(where, { fetch: recordingFetch, ...options });
}

function newClient() {
  const capabilities = { elicitation: { form: {}, url: {} }, sampling: {}, roots: { listChanged: true } };
  const client = new Client({ name: "ts", version: "1" }, { capabilities });
  client.setRequestHandler(types.ElicitRequestSchema, ({ params }) => {
    report.questions.push(params);
    return params.mode === "url" ? { action: "decline" } : { action: "accept", content: { count: 2, dish: "a2" } };
  });
  client.setRequestHandler(types.CreateMessageRequestSchema, ({ params }) => {
    report.questions.push(params);
    return { role: "assistant", model: "small-1", content: { type: "text", text: "Hello" }, stopReason: "endTurn" };
  });
  client.setRequestHandler(types.ListRootsRequestSchema, () => ({ roots: [{ uri: "file:///home/me", name: "home" }] }));
  client.fallbackNotificationHandler = async (notification) => {
    report.notifications.push(notification.method);
    waiting?.();
  };
  client.onerror = (error) => report.errors.push(String(error));
  return client;
}

// Progress as it comes in. The client itself loses it if the result comes in the same piece.
async function connect(client, transport) {
  await client.connect(transport);
  const take = transport.onmessage;
  transport.onmessage = (message, extra) => {
    if (message.method === "notifications/progress") report.progress.push(message.params);
    take(message, extra);
  };
}

let waiting;

// Until so many notifications have come.
async function heard(count) {
  while (report.notifications.length < count) await new Promise((resolve) => (waiting = resolve));
}

const call = (client, name, args = {}, options = {}) =>
  client.callTool({ name, arguments: args }, undefined, options);
const failure = (promise) => promise.then(() => null, ({ code, message, data }) => ({ code, message, data }));

const scenes = {
  // Everything that a server offers.
  async tour(client) {
    report.server = client.getServerVersion();
    report.capabilities = client.getServerCapabilities();
    report.instructions = client.getInstructions();
    report.tools = (await client.listTools()).tools.map(({ name }) => name);
    report.echo = await call(client, "echo", { text: "naïve ☃ 😀" });
    report.weather = await call(client, "weather", { city: "Rome" });
    report.failed = await call(client, "fail", { how: "reason" });
    report.refused = await failure(call(client, "fail", { how: "error" }));
    report.unknown = await failure(client.readResource({ uri: "test://nothing" }));
    report.resource = await client.readResource({ uri: "test://static-text" });
    report.prompt = await client.getPrompt({ name: "review", arguments: { code: "x = 1" } });
    report.suggested = await client.complete({
      ref: { type: "ref/prompt", name: "review" },
      argument: { name: "tone", value: "fr" },
    });
    report.count = await call(client, "count", { to: 3 }, { onprogress: () => {} });
    report.many = await Promise.all(
      Array.from({ length: 20 }, (_, number) => call(client, "echo", { text: String(number) })),
    ).then((results) => results.map(({ content }) => content[0].text));
    await client.setLoggingLevel("alert");
    await call(client, "log");
    await heard(2);
    await call(client, "change", { what: "tools" });
    await heard(3);
    await client.subscribeResource({ uri: "test://static-text" });
    await call(client, "change", { what: "test://static-text" });
    await heard(4);
    const abort = new AbortController();
    const waits = call(client, "wait", {}, { signal: abort.signal, onprogress: () => abort.abort("enough") });
    report.aborted = await failure(waits);
    report.cancelled = await call(client, "cancelled");
  },

  // Everything that a server asks.
  async questions(client) {
    report.booked = await call(client, "book", { flight: "KL 1234" });
    report.visited = await call(client, "visit", { id: "v1" });
    report.locked = await failure(call(client, "locked", { id: "v2" }));
    report.sampled = await call(client, "test_sampling", { prompt: "Say hello." });
    report.roots = await call(client, "test_input_required_result_list_roots");
    await call(client, "unlock", { id: "v1" });
    await heard(1);
  },

  // A call whose response ends early, or breaks.
  async work(client) {
    report.tokens = [];
    report.worked = await call(client, "work", {}, {
      onprogress: () => {},
      onresumptiontoken: (token) => report.tokens.push(token),
    });
  },

  // Another client of the same session takes up what the first one has left.
  async successor(client, transport) {
    const token = await new Promise((resolve) => {
      call(client, "work", {}, { onresumptiontoken: resolve, onprogress: () => {} }).catch(() => {});
    });
    const { sessionId, protocolVersion } = transport;
    await client.close();
    const second = newTransport({ sessionId });
    second.setProtocolVersion(protocolVersion);
    const heir = newClient();
    report.progress = [];
    await connect(heir, second);
    const work = call(heir, "work", {}, { resumptionToken: token });
    // In a session of its own, since the ids of this one's requests begin anew.
    const other = newClient();
    await connect(other, newTransport());
    await call(other, "go_on");
    report.worked = await work;
    await other.transport.terminateSession();
    await other.close();
    await second.terminateSession();
    await heir.close();
  },

  // Two calls: the first is cancelled, and the session is deleted while the second runs.
  async abandoned(client, transport) {
    const abort = new AbortController();
    const first = call(client, "wait", {}, { signal: abort.signal, onprogress: () => abort.abort("enough") });
    report.cancelled = await failure(first);
    const resumed = ({ verb, lastEventId }) => verb === "GET" && lastEventId !== null;
    while (!report.requests.some(resumed)) await new Promise((resolve) => setTimeout(resolve, 50));
    report.before = report.errors.length;
    const headers = { "mcp-session-id": transport.sessionId };
    const end = () => fetch(url, { method: "DELETE", headers });
    report.ended = await failure(call(client, "wait", {}, { onprogress: end }));
    await client.close();
  },

  // The client is closed while a call runs. Its session remains until it is deleted.
  async leaves(client, transport) {
    const headers = { "mcp-session-id": transport.sessionId };
    report.left = await failure(call(client, "wait", {}, { onprogress: () => client.close() }));
    report.deleted = (await fetch(url, { method: "DELETE", headers })).status;
    const next = newClient();
    await connect(next, newTransport());
    report.cancelled = await call(next, "cancelled");
    await next.transport.terminateSession();
    await next.close();
  },

  // A session that is over, by its own wish and by others'.
  async ended(client, transport) {
    const headers = { "mcp-session-id": transport.sessionId };
    report.deleted = (await fetch(url, { method: "DELETE", headers })).status;
    report.call = await failure(call(client, "echo", { text: "?" }));
    report.again = await failure(transport.terminateSession());
    await client.close();
    const next = newTransport();
    const anew = newClient();
    await connect(anew, next);
    const session = next.sessionId;
    report.anew = await call(anew, "echo", { text: "again" });
    await next.terminateSession();
    report.after = next.sessionId ?? null;
    report.gone = (await fetch(url, { method: "DELETE", headers: { "mcp-session-id": session } })).status;
    await anew.close();
  },
};

const client = newClient();
const transport = newTransport();
await connect(client, transport);
report.version = transport.protocolVersion ?? transport._protocolVersion;
report.session = transport.sessionId ?? null;
let open = true;
client.onclose = () => (open = false);
await scenes[scene](client, transport);
if (open) {
  if (transport.sessionId) await transport.terminateSession();
  await client.close();
}
console.log(JSON.stringify(report));
