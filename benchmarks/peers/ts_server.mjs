// `benchmarks/server.py` with the official TypeScript SDKs: `McpServer`, whose schemas are written with zod.
//
//     node ts_server.mjs 1|2 MODULES stdio [--tools N]
//     node ts_server.mjs 1|2 MODULES http --port P --mode MODE [--tools N]
//
// 1 is `@modelcontextprotocol/sdk` 1.32, and 2 is `@modelcontextprotocol/server` 2.4. MODULES is a node_modules
// directory. HTTP is `node:http`, without a framework. Only 2 has the mode `modern`. Without sessions both make a new
// server for each request, as they have to.

import { randomUUID } from "node:crypto";
import { createServer } from "node:http";
import { isMain, load, loadZod } from "./ts_modules.mjs";

const words = "Look something up. There are many of these, so that a list is long.";

/** Return a function that makes the measured server. */
export async function factory(major, modules, tools = 0) {
  const z = await loadZod(modules);
  const { McpServer } = await (major === "1" ? load(modules, "sdk", "./server/mcp.js") : load(modules, "server", "."));
  const text = (given) => ({ content: [{ type: "text", text: given }] });
  const integer = z.number().int();
  const listed = {
    echo: { description: "Give the text back.", inputSchema: z.object({ text: z.string() }) },
    add: {
      description: "Add two numbers.",
      inputSchema: z.object({ a: integer, b: integer }),
      outputSchema: z.object({ result: integer }),
    },
    progress: { description: "Report `n` steps of progress.", inputSchema: z.object({ n: integer }) },
  };
  const filler = {
    description: words,
    inputSchema: z.object({ query: z.string(), limit: integer.default(10), exact: z.boolean().default(false) }),
  };
  const handlers = {
    echo: (given) => text(given.text),
    add: ({ a, b }) => ({ ...text(String(a + b)), structuredContent: { result: a + b } }),
    async progress({ n }, context) {
      // The second version has the request in a member of the context.
      const notify = context.sendNotification ?? context.mcpReq.notify;
      const { progressToken } = (context.mcpReq ?? context)._meta ?? {};
      for (let progress = 1; progress <= n && progressToken !== undefined; progress++) {
        await notify({ method: "notifications/progress", params: { progressToken, progress, total: n } });
      }
      return text("done");
    },
  };
  return () => {
    const server = new McpServer({ name: "benchmark", version: "1.0.0" });
    for (const [name, config] of Object.entries(listed)) {
      server.registerTool(name, config, handlers[name]);
    }
    for (let number = 0; number < tools; number++) {
      server.registerTool(`filler_${number}`, filler, ({ query, limit, exact }) => text(`${query} ${limit} ${exact}`));
    }
    return server;
  };
}

async function serveStdio(major, modules, make) {
  if (major === "1") {
    const { StdioServerTransport } = await load(modules, "sdk", "./server/stdio.js");
    await make().connect(new StdioServerTransport());
  } else {
    const { serveStdio } = await load(modules, "server", "./stdio");
    serveStdio(make);
  }
}

/** Return the function that answers a request of `node:http` in this mode. */
async function handler(major, modules, make, mode) {
  const Transport =
    major === "1"
      ? (await load(modules, "sdk", "./server/streamableHttp.js")).StreamableHTTPServerTransport
      : (await load(modules, "node", ".")).NodeStreamableHTTPServerTransport;
  if (mode === "modern") {
    if (major === "1") {
      throw new Error("version 1 has no mode `modern`");
    }
    const { createMcpHandler } = await load(modules, "server", ".");
    const { toNodeHandler } = await load(modules, "node", ".");
    return toNodeHandler(createMcpHandler(make, { legacy: "reject" }));
  }
  const [how, replies] = mode.split("-");
  const enableJsonResponse = replies === "json";
  const sessions = new Map();
  return async (request, response) => {
    let transport = sessions.get(request.headers["mcp-session-id"]);
    if (!transport) {
      transport = new Transport({
        sessionIdGenerator: how === "stateless" ? undefined : randomUUID,
        onsessioninitialized: (id) => sessions.set(id, transport),
        onsessionclosed: (id) => sessions.delete(id),
        enableJsonResponse,
      });
      const server = make();
      await server.connect(transport);
      if (how === "stateless") {
        response.on("close", () => server.close());
      }
    }
    await transport.handleRequest(request, response);
  };
}

async function main([major, modules, ...given]) {
  const options = Object.fromEntries(
    ["--tools", "--port", "--mode"].map((name) => [name, given.includes(name) ? given[given.indexOf(name) + 1] : ""]),
  );
  const make = await factory(major, modules, Number(options["--tools"]));
  if (given[0] === "stdio") {
    await serveStdio(major, modules, make);
  } else {
    const answer = await handler(major, modules, make, options["--mode"]);
    const server = createServer(answer);
    server.keepAliveTimeout = 600_000; // as long as a measure may take
    server.listen(Number(options["--port"]), "127.0.0.1");
  }
}

if (isMain(import.meta.url)) {
  await main(process.argv.slice(2));
}
