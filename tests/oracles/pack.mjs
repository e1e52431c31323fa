// Packs a folder into an ASAR as Electron's packers do.
//
// usage: MODULES=<folder with node_modules> node pack.mjs   (JSON lines in: {"source", "target"}; out: {"packed": true})

import { createRequire } from "node:module";
import { createInterface } from "node:readline";

const { createPackageWithOptions } = createRequire(process.env.MODULES + "/package.json")("@electron/asar");

for await (const line of createInterface({ input: process.stdin })) {
  const { source, target } = JSON.parse(line);
  await createPackageWithOptions(source, target, { unpack: "*.node" });
  process.stdout.write(JSON.stringify({ packed: true }) + "\n");
}
