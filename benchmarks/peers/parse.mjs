// Parse each JavaScript file once: node parse.mjs acorn|babel FOLDER_OR_FILE MODULES
// A file is read as a module, else as a script; TypeScript goes to Babel alone.
import { readFileSync, readdirSync, statSync } from "node:fs";
import { createRequire } from "node:module";
import { extname, join } from "node:path";

const load = createRequire(process.argv[4] + "/package.json");
const [, , parser, root] = process.argv;
const typescript = new Set([".ts", ".cts", ".mts", ".tsx"]);
const javascript = new Set([".js", ".cjs", ".mjs", ".jsx"]);

function* files(path) {
  if (statSync(path).isFile()) return void (yield path);
  for (const entry of readdirSync(path, { withFileTypes: true })) {
    if (entry.isDirectory()) yield* files(join(path, entry.name));
    else if (entry.isFile()) yield join(path, entry.name);
  }
}

const parse = {
  acorn() {
    const acorn = load("acorn");
    return (text, _extension, sourceType) =>
      acorn.parse(text, { ecmaVersion: "latest", sourceType, allowHashBang: true, allowReturnOutsideFunction: true });
  },
  babel() {
    const babel = load("@babel/parser");
    return (text, extension, sourceType) => {
      const plugins = typescript.has(extension) ? ["typescript", "decorators"] : [];
      if (extension.endsWith("x")) plugins.push("jsx");
      return babel.parse(text, { sourceType, errorRecovery: true, allowReturnOutsideFunction: true, plugins });
    };
  },
}[parser]();

let read = 0, refused = 0;
for (const path of files(root)) {
  const extension = extname(path).toLowerCase();
  if (!(javascript.has(extension) || (parser === "babel" && typescript.has(extension)))) continue;
  const text = readFileSync(path, "utf8");
  read++;
  try {
    parse(text, extension, "module");
  } catch {
    try {
      parse(text, extension, "script");
    } catch {
      refused++;
    }
  }
}
process.stdout.write(JSON.stringify({ read, refused }));
