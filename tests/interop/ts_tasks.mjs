// The task clients of TypeScript, with a server that has tasks:
//
//     node ts_tasks.mjs sdk MODULES URL      the official SDK 1.32, `client.experimental.tasks` (2025-11-25)
//     node ts_tasks.mjs v1 MODULES URL       `@modelcontextprotocol/ext-tasks` with `@modelcontextprotocol/client` 2, in 2025-11-25
//     node ts_tasks.mjs v2 MODULES URL       the same with the extension of 2026-07-28
//
// MODULES is a node_modules directory with these packages. Prints one JSON report of what it received. It checks nothing: that is for
// the test that reads the report.

import { readFileSync } from "node:fs";
import { pathToFileURL } from "node:url";

const [which, modules, url] = process.argv.slice(2);
const report = { questions: [] };
const info = { name: "ts", version: "1" };
const form = { action: "accept", content: { name: "Ada" } };
const failure = (promise) => promise.then((value) => ({ value }), (error) => ({ code: error.code, message: error.message, name: error.name }));

async function withSdk() {
  const load = (path) => import(pathToFileURL(`${modules}/@modelcontextprotocol/sdk/dist/esm/${path}`));
  const { Client } = await load("client/index.js");
  const { StreamableHTTPClientTransport } = await load("client/streamableHttp.js");
  const types = await load("types.js");
  const client = new Client(info, { capabilities: { elicitation: { form: {} }, tasks: {} } });
  client.setRequestHandler(types.ElicitRequestSchema, ({ params }) => {
    report.questions.push(params);
    return form;
  });
  await client.connect(new StreamableHTTPClientTransport(new URL(url)));
  await client.listTools();
  const tasks = client.experimental.tasks;
  const stream = async (name, args = {}, each = () => {}) => {
    const seen = [];
    const params = { name, arguments: args };
    for await (const message of tasks.callToolStream(params, types.CallToolResultSchema, { task: { ttl: 60000 } })) {
      seen.push(message);
      await each(message);
    }
    return seen.map(({ type, task, result, error }) => ({ type, task, result, error: error && { code: error.code, message: error.message } }));
  };
  report.research = await stream("research", { topic: "owls" });
  report.ask = await stream("ask");
  report.fail = await stream("fail");
  report.cancelled = await stream("forever", {}, async ({ type, task }) => {
    if (type === "taskCreated") report.cancel = await tasks.cancelTask(task.taskId);
  });
  report.again = await failure(tasks.cancelTask(report.cancel.taskId));
  report.unknown = await failure(tasks.getTask("unknown"));
  report.listed = (await tasks.listTasks()).tasks.map(({ status }) => status);
  report.plain = await failure(client.callTool({ name: "ask", arguments: {} }));
  await client.transport.terminateSession();
  await client.close();
}

async function withExtension(generation) {
  // Both are for `import` only, which ignores NODE_PATH: so by their files.
  const entry = (name, path) => {
    const root = `${modules}/@modelcontextprotocol/${name}/`;
    const exported = JSON.parse(readFileSync(`${root}package.json`)).exports[path];
    return import(pathToFileURL(root + (exported.import.default ?? exported.import)));
  };
  const { Client, StreamableHTTPClientTransport } = await entry("client", ".");
  const { createTaskSessionFromClient } = await entry("ext-tasks", "./client");
  const modern = generation === "v2";
  const version = modern ? "2026-07-28" : "2025-11-25";
  const capabilities = { elicitation: { form: {} }, ...(modern ? { extensions: { "io.modelcontextprotocol/tasks": {} } } : { tasks: {} }) };
  const client = new Client(info, { capabilities, versionNegotiation: modern ? { mode: { pin: version } } : { mode: "legacy" } });
  const transport = new StreamableHTTPClientTransport(new URL(url));
  await client.connect(transport);
  report.version = client.getNegotiatedProtocolVersion?.() ?? null;
  report.era = client.getProtocolEra();

  // What the package leaves to its host: sending requests that the client's own codecs reject.
  let next = 1000;
  async function rawDispatch(request, { signal } = {}) {
    const headers = {
      "content-type": "application/json",
      accept: "application/json, text/event-stream",
      "mcp-protocol-version": version,
      "mcp-method": request.method,
      ...(request.params.name ?? request.params.taskId ? { "mcp-name": request.params.name ?? request.params.taskId } : {}),
    };
    const body = JSON.stringify({ jsonrpc: "2.0", id: next++, ...request });
    const response = await fetch(url, { method: "POST", headers, body, signal });
    const text = await response.text();
    const data = text.startsWith("{") ? text : text.split("\n").filter((line) => line.startsWith("data: {")).pop().slice(6);
    const { result, error } = JSON.parse(data);
    return error === undefined ? { kind: "result", result } : { kind: "error", error };
  }

  const { tools } = await client.listTools();
  const declarations = new Map(tools.map((tool) => [tool.name, { ...tool, taskSupport: tool.execution?.taskSupport }]));
  const session = createTaskSessionFromClient(client, {
    endpointId: "test",
    tools: { currentTool: (name) => declarations.get(name) },
    onInputRequest: async (request, context) => {
      report.questions.push({ ...request, delivery: context.delivery, taskId: context.taskId ?? null });
      return form;
    },
    ...(modern ? { rawDispatch, v2RequestFraming: { protocolVersion: version, clientInfo: info, clientCapabilities: capabilities } } : {}),
  });
  const run = async (name, args = {}, each = () => {}) => {
    const execution = await session.callTool(name, args, { task: { preference: "prefer" } });
    const events = [];
    await each(execution);
    const { outcome } = await execution.settle({ onEvent: (event) => void events.push(event.task?.status ?? event.type) });
    const error = outcome.error && { code: outcome.error.code, message: outcome.error.message };
    return { kind: execution.kind, status: outcome.status, result: outcome.result, error, events };
  };
  report.research = await run("research", { topic: "owls" });
  // In 2025-11-25 this client never sends `tasks/result` before the end, so that a question of the task does not reach it.
  if (modern) report.ask = await run("ask");
  report.fail = await run("fail");
  report.plain = await run("plain");
  report.cancelled = await run("forever", {}, (execution) => execution.cancel());
  await session.close();
  await client.close();
}

await (which === "sdk" ? withSdk() : withExtension(which));
console.log(JSON.stringify(report));
