// A right server of the TypeScript SDK, over stdio, which is broken by script:
//
//     node ts_server.mjs MODULES
//
// MODULES is a node_modules directory with `@modelcontextprotocol/sdk` 1.x.

import { pathToFileURL } from "node:url";

const [modules] = process.argv.slice(2);
const load = (path) => import(pathToFileURL(`${modules}/${path}`));
const { McpServer } = await load("@modelcontextprotocol/sdk/dist/esm/server/mcp.js");
const { StdioServerTransport } = await load("@modelcontextprotocol/sdk/dist/esm/server/stdio.js");
const { z } = await load("zod/index.js");

const server = new McpServer({ name: "ts workshop", version: "1" });
const annotations = { readOnlyHint: true, openWorldHint: false };
const text = (found) => ({ content: [{ type: "text", text: found }] });

server.registerTool("echo", { inputSchema: { text: z.string() }, annotations }, ({ text: given }) => text(given));
server.registerTool(
  "weather",
  { inputSchema: { city: z.string() }, outputSchema: { city: z.string(), celsius: z.number() }, annotations },
  ({ city }) => ({ ...text(JSON.stringify({ city, celsius: 21.5 })), structuredContent: { city, celsius: 21.5 } }),
);
server.registerTool("count", { inputSchema: { to: z.number().int().min(0).max(10) }, annotations }, async ({ to }, { _meta, sendNotification }) => {
  const progressToken = _meta?.progressToken;
  for (let progress = 1; progressToken !== undefined && progress <= to; progress++) {
    await sendNotification({ method: "notifications/progress", params: { progressToken, progress, total: to } });
  }
  return text(String(to));
});
server.registerResource("one", "note:///one", { mimeType: "text/plain" }, (uri) => ({ contents: [{ uri: uri.href, text: "The note one." }] }));
server.registerPrompt("greet", { argsSchema: { name: z.string() } }, ({ name }) => ({
  messages: [{ role: "user", content: { type: "text", text: `Greet ${name}.` } }],
}));
await server.connect(new StdioServerTransport());
