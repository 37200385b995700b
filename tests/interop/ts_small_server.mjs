// A small server of a TypeScript SDK, over stdio:
//
//     node ts_small_server.mjs sdk MODULES       `@modelcontextprotocol/sdk` 1.x
//     node ts_small_server.mjs server MODULES    `@modelcontextprotocol/server` 2.x
//
// MODULES is a node_modules directory.

import { readFileSync } from "node:fs";
import { pathToFileURL } from "node:url";

const [which, modules] = process.argv.slice(2);

// The packages are for `import` only, which ignores NODE_PATH: so by their files.
function load(name, entry) {
  const root = `${modules}/@modelcontextprotocol/${name}/`;
  const found = JSON.parse(readFileSync(`${root}package.json`)).exports;
  const exported = found[entry] ?? found["./*"];
  const file = exported.import.default ?? exported.import;
  return import(pathToFileURL(root + file.replace("*", entry.slice(2))));
}

function make(McpServer) {
  const server = new McpServer({ name: "small", version: "1" });
  server.registerTool("greet", { description: "Greet." }, () => ({ content: [{ type: "text", text: "Hello!" }] }));
  return server;
}

if (which === "sdk") {
  const { McpServer } = await load("sdk", "./server/mcp.js");
  const { StdioServerTransport } = await load("sdk", "./server/stdio.js");
  await make(McpServer).connect(new StdioServerTransport());
} else {
  const { McpServer } = await load("server", ".");
  const { serveStdio } = await load("server", "./stdio");
  await serveStdio(() => make(McpServer));
}
