// The packages of a node_modules directory that isn't beside this file. `import` ignores NODE_PATH, so by their files.

import { readFileSync, realpathSync } from "node:fs";
import { pathToFileURL } from "node:url";

/** Import an entry of a package of the SDKs, such as "./server/mcp.js". */
export function load(modules, name, entry) {
  return loadFile(`${modules}/@modelcontextprotocol/${name}/`, entry);
}

/** Import zod, and return its `z`. */
export async function loadZod(modules) {
  return (await loadFile(`${modules}/zod/`, ".")).z;
}

/** Return whether this file is the program. */
export function isMain(url) {
  return url === pathToFileURL(realpathSync(process.argv[1])).href;
}

function loadFile(root, entry) {
  const found = JSON.parse(readFileSync(`${root}package.json`)).exports;
  const exported = found[entry] ?? found["./*"];
  const file = exported.import.default ?? exported.import;
  return import(pathToFileURL(root + file.replace("*", entry.slice(2))));
}
