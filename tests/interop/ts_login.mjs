// The official TypeScript client (`@modelcontextprotocol/sdk`) at a server that wants a token:
//
//     node ts_login.mjs MODULES URL SCENE
//
// The browser is a request that follows no redirect, and its user agrees to everything. Prints one JSON report of what came of it, and
// checks nothing.

import { pathToFileURL } from "node:url";

const [modules, url, scene] = process.argv.slice(2);
const load = (path) => import(pathToFileURL(`${modules}/@modelcontextprotocol/sdk/dist/esm/${path}`));

const { Client } = await load("client/index.js");
const { StreamableHTTPClientTransport } = await load("client/streamableHttp.js");

const report = { requests: [], scopes: [], texts: [], errors: [] };

async function recordingFetch(target, init = {}) {
  const response = await fetch(target, init);
  report.requests.push(`${init.method ?? "GET"} ${new URL(target).pathname} ${response.status}`);
  return response;
}

// What the SDK wants of whoever logs in. `refreshes`: whether refresh tokens are kept; with one, the SDK asks for more scopes by it.
class Provider {
  constructor(refreshes) {
    this.refreshes = refreshes;
  }
  redirectUrl = "http://127.0.0.1:1/callback";
  clientMetadata = { redirect_uris: [this.redirectUrl], client_name: "ts", token_endpoint_auth_method: "none" };
  state = () => "s";
  clientInformation = () => this.client;
  saveClientInformation = (client) => (this.client = client);
  tokens = () => this.kept;
  saveTokens = (tokens) => {
    report.scopes.push(tokens.scope);
    this.kept = this.refreshes ? tokens : { ...tokens, refresh_token: undefined };
  };
  saveCodeVerifier = (verifier) => (this.verifier = verifier);
  codeVerifier = () => this.verifier;
  redirectToAuthorization = async (page) => {
    const response = await fetch(page, { redirect: "manual" });
    this.back = new URL(response.headers.get("location"));
  };
}

// Does something; where the SDK wants a user, he has agreed already, and it is done again.
async function withUser(transport, work) {
  try {
    return await work();
  } catch (error) {
    if (error.constructor.name !== "UnauthorizedError") throw error;
    await transport().finishAuth(transport()._authProvider.back.searchParams.get("code"));
    return await work();
  }
}

const provider = new Provider(scene !== "more");
const client = new Client({ name: "ts", version: "1" });
client.onerror = (error) => report.errors.push(String(error));
let transport;
await withUser(
  () => transport,
  () => {
    transport = new StreamableHTTPClientTransport(new URL(url), { authProvider: provider, fetch: recordingFetch });
    return client.connect(transport);
  },
);
const call = async (name) => {
  const result = await withUser(() => transport, () => client.callTool({ name, arguments: {} }));
  report.texts.push(result.content[0].text);
};
await call("whoami");
if (scene === "more") await call("erase");
if (scene === "renewed") {
  provider.kept = { ...provider.kept, access_token: "expired" };
  await call("whoami");
}
await transport.terminateSession();
await client.close();
console.log(JSON.stringify(report));
