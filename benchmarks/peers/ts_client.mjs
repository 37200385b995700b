// `benchmarks/client.py` with the official TypeScript SDKs, and the same arguments after the first two:
//
//     node ts_client.mjs 1|2 MODULES SECONDS COMMAND...
//     node ts_client.mjs 1|2 MODULES SECONDS URL REVISION
//     node ts_client.mjs 1|2 MODULES SECONDS memory
//
// 1 is `@modelcontextprotocol/sdk` 1.32, and 2 is `@modelcontextprotocol/client` 2.4.

import { load } from "./ts_modules.mjs";
import { factory } from "./ts_server.mjs";

const CONCURRENT = 32;
const CALL = { name: "echo", arguments: { text: "x".repeat(100) } };

/** Return calls a second, and the processor time of each in microseconds. */
async function rate(client, tasks, seconds) {
  let made = 0;
  const start = performance.now();
  const cpu = process.cpuUsage();
  const calls = async () => {
    do {
      const result = await client.callTool(CALL);
      if (result.isError) {
        throw new Error(JSON.stringify(result));
      }
      made += 1;
    } while (performance.now() < start + 1000 * seconds);
  };
  await Promise.all(Array.from({ length: tasks }, calls));
  const took = (performance.now() - start) / 1000;
  const { user, system } = process.cpuUsage(cpu);
  return [made / took, (user + system) / made];
}

async function connect(major, modules, target) {
  const of = (entry) => load(modules, "sdk", `./client/${entry}.js`);
  const { Client } = await (major === "1" ? of("index") : load(modules, "client", "."));
  const modern = target[1] === "2026-07-28";
  const versionNegotiation = { mode: modern ? { pin: target[1] } : "legacy" };
  const client = new Client({ name: "benchmark", version: "1.0.0" }, { versionNegotiation });
  let transport;
  if (target[0] === "memory") {
    const entry = major === "1" ? "./inMemory.js" : ".";
    const { InMemoryTransport } = await load(modules, major === "1" ? "sdk" : "server", entry);
    const [ours, theirs] = InMemoryTransport.createLinkedPair();
    await (await factory(major, modules))().connect(theirs);
    transport = ours;
  } else if (target[0].startsWith("http://")) {
    const { StreamableHTTPClientTransport } = await (major === "1" ? of("streamableHttp") : load(modules, "client", "."));
    transport = new StreamableHTTPClientTransport(new URL(target[0]));
  } else {
    const { StdioClientTransport } = await (major === "1" ? of("stdio") : load(modules, "client", "./stdio"));
    transport = new StdioClientTransport({ command: target[0], args: target.slice(1) });
  }
  await client.connect(transport);
  return client;
}

const [major, modules, seconds, ...target] = process.argv.slice(2);
const client = await connect(major, modules, target);
await rate(client, CONCURRENT, 20 * seconds); // not counted: V8 compiles what is called often
console.log(...(await rate(client, 1, Number(seconds))), ...(await rate(client, CONCURRENT, Number(seconds))));
await client.close();
