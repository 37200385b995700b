// `ws`, the WebSocket library of npm, told by its command line what to be:
//
//     node ws_peer.mjs MODULES client URL      asks a server, and prints a JSON report of what it heard
//     node ws_peer.mjs MODULES server          prints a port, and answers as a small server of MCP until its stdin ends
//
// MODULES is a node_modules directory.

import { createRequire } from "node:module";

const [modules, role, url] = process.argv.slice(2);
const { WebSocket, WebSocketServer } = createRequire(`${modules}/`)("ws");

if (role === "client") {
  const report = { messages: [], pongs: [], subprotocol: "", extensions: "", code: 0 };
  const socket = new WebSocket(url, "mcp", { perMessageDeflate: true });
  const ask = (id, method, params) => socket.send(JSON.stringify({ jsonrpc: "2.0", id, method, params }));
  socket.on("pong", (data) => report.pongs.push(data.toString()));
  socket.on("open", () => {
    report.subprotocol = socket.protocol;
    report.extensions = socket.extensions;
    const clientInfo = { name: "ws", version: "1" };
    ask(1, "initialize", { protocolVersion: "2025-11-25", capabilities: {}, clientInfo });
  });
  socket.on("message", (data, isBinary) => {
    const message = JSON.parse(data.toString());
    report.messages.push({ ...message, isBinary });
    if (message.id === 1) {
      socket.send(JSON.stringify({ jsonrpc: "2.0", method: "notifications/initialized" }));
      socket.ping("still there?");
      // In fragments, with a ping in between.
      const text = JSON.stringify({
        jsonrpc: "2.0",
        id: 2,
        method: "tools/call",
        params: { name: "echo", arguments: { text: "naïve ☃ \u{1f600}".repeat(1000) } },
      });
      const middle = text.length / 2;
      socket.send(text.slice(0, middle), { fin: false });
      socket.ping("and now?");
      socket.send(text.slice(middle), { fin: true });
    } else {
      socket.send(Buffer.from("{}"));
    }
  });
  socket.on("close", (code) => {
    report.code = code;
    console.log(JSON.stringify(report));
  });
} else {
  const options = { port: 0, host: "127.0.0.1", perMessageDeflate: true };
  const server = new WebSocketServer({ ...options, handleProtocols: (offered) => [...offered][0] });
  server.on("listening", () => console.log(server.address().port));
  server.on("connection", (socket) => {
    socket.on("message", (data) => {
      const { id, method, params } = JSON.parse(data.toString());
      const answer = (result) => socket.send(JSON.stringify({ jsonrpc: "2.0", id, result }));
      if (method === "initialize") {
        const serverInfo = { name: "ws", version: "1" };
        answer({ protocolVersion: params.protocolVersion, capabilities: { tools: {} }, serverInfo });
      } else if (method === "tools/call" && params.name === "leave") {
        socket.close(1001, "enough");
      } else if (method === "tools/call") {
        answer({ content: [{ type: "text", text: params.arguments.text }] });
      }
    });
  });
  process.stdin.resume().on("end", () => process.exit(0));
}
