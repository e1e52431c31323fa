// An independent reader of module references, for comparison with the product.
//
// Parsers: acorn for JavaScript (as a module, else as CommonJS), the TypeScript compiler (through typescript-eslint) for
// JSX, TypeScript and TSX. Scopes: eslint-scope and the scope manager of typescript-eslint. It works backwards, from each
// call to what its callee can be, where the product works forwards from the names.
//
// usage: MODULES=<folder with node_modules> node references.mjs   (JSON lines in, JSON lines out)
//   in:  {"id", "language": "javascript|jsx|typescript|tsx", "path"} or {"id", "language", "source": base64}
//   out: {"id", "references": [{kind, specifier, base, bindings, span, statement}]} or {"id", "error"}
//   a span is [start, start line, start column, end, end line, end column]: UTF-8 bytes, lines from 1, columns from 0

import { readFileSync } from "node:fs";
import { createRequire } from "node:module";
import { createInterface } from "node:readline";

const load = createRequire(process.env.MODULES + "/package.json");
const acorn = load("acorn");
const eslintScope = load("eslint-scope");

function parseJavaScript(text) {
  const base = { ecmaVersion: "latest", ranges: true, allowHashBang: true };
  try {
    const ast = acorn.parse(text, { ...base, sourceType: "module" });
    return { ast, scopes: eslintScope.analyze(ast, { ecmaVersion: 2026, sourceType: "module", ignoreEval: true }) };
  } catch (moduleError) {
    try {
      const ast = acorn.parse(text, { ...base, sourceType: "script", allowReturnOutsideFunction: true });
      const options = { ecmaVersion: 2026, sourceType: "script", nodejsScope: true, ignoreEval: true };
      return { ast, scopes: eslintScope.analyze(ast, options) };
    } catch {
      throw moduleError;
    }
  }
}

function parseTypeScript(text, language) {
  const { ast, scopeManager } = load("@typescript-eslint/parser").parseForESLint(text, {
    filePath: { jsx: "file.jsx", typescript: "file.ts", tsx: "file.tsx" }[language],
    ecmaFeatures: { jsx: language !== "typescript" },
    sourceType: "module",
    lib: [],
    range: true,
    allowInvalidAST: true,
    suppressDeprecatedPropertyWarnings: true,
  });
  return { ast, scopes: scopeManager };
}

// ---------------------------------------------------------------- positions

function positions(text) {
  const bytes = new Uint32Array(text.length + 1);
  for (let i = 0, at = 0; i < text.length; i++) {
    bytes[i] = at;
    const unit = text.charCodeAt(i);
    const pair = unit >= 0xd800 && unit <= 0xdbff && i + 1 < text.length && (text.charCodeAt(i + 1) & 0xfc00) === 0xdc00;
    if (pair) {
      bytes[++i] = at + 4;
      at += 4;
    } else at += unit < 0x80 ? 1 : unit < 0x800 ? 2 : 3;
    bytes[i + 1] = at;
  }
  const lines = [0];
  for (const match of text.matchAll(/\r\n|[\n\r\u2028\u2029]/g)) lines.push(match.index + match[0].length);
  const place = (offset) => {
    let low = 0;
    let high = lines.length;
    while (high - low > 1) {
      const middle = (low + high) >> 1;
      if (lines[middle] <= offset) low = middle;
      else high = middle;
    }
    return [bytes[offset], low + 1, bytes[offset] - bytes[lines[low]]];
  };
  return ([start, end]) => [...place(start), ...place(end)];
}

// ---------------------------------------------------------------- the tree

function everyNode(ast) {
  const parents = new Map();
  const nodes = [];
  const stack = [ast];
  while (stack.length) {
    const node = stack.pop();
    nodes.push(node);
    for (const key in node) {
      if (key === "parent" || key === "tokens" || key === "comments" || key === "loc" || key === "range") continue;
      const value = node[key];
      for (const child of Array.isArray(value) ? value : [value]) {
        if (child && typeof child.type === "string" && child.range && child !== node && !parents.has(child)) {
          parents.set(child, node);
          stack.push(child);
        }
      }
    }
  }
  return { nodes, parents };
}

const CASTS = new Set(["TSAsExpression", "TSNonNullExpression", "TSSatisfiesExpression", "TSTypeAssertion"]);
const bare = (node) => {
  while (node && (node.type === "ChainExpression" || CASTS.has(node.type))) node = node.expression;
  return node;
};
const literal = (node) => {
  node = bare(node);
  if (node?.type === "Literal" && typeof node.value === "string") return node.value;
  if (node?.type === "TemplateLiteral" && node.expressions.length === 0) return node.quasis[0].value.cooked;
  return null;
};
const memberName = (node) => (node.computed ? literal(node.property) : node.property.name);
const first = (node) => (node.arguments[0]?.type === "SpreadElement" ? null : node.arguments[0]);

const table = (entries) => Object.assign(Object.create(null), entries); // a name may be `constructor`
const LIBRARIES = table({ module: "lib:module", worker_threads: "lib:worker_threads", url: "lib:url" });
const library = (specifier) => LIBRARIES[specifier?.replace(/^node:/, "")] ?? null;
const GLOBALS = table({ require: "require", module: "module", Worker: "Worker", SharedWorker: "Worker", URL: "URL" });
const MEMBERS = table({
  "require resolve": "resolve",
  "require* resolve": "resolve*",
  "created resolve": "resolve",
  "created* resolve": "resolve*",
  "module require": "require",
  "lib:module createRequire": "createRequire",
  "lib:module default": "lib:module",
  "lib:module Module": "lib:module",
  "lib:worker_threads Worker": "Worker",
  "lib:worker_threads default": "lib:worker_threads",
  "lib:url URL": "URL",
  "lib:url default": "lib:url",
});
const member = (value, name) => MEMBERS[`${value} ${name}`] ?? null;
const stored = (value) => {
  if (value === "created") return "require";
  if (value === "created*") return "require*";
  return /^(promise:|lib:|createRequire$|Worker$|URL$)/.test(value ?? "") ? value : null;
};
const INTEROP =
  /^(__importDefault|__importStar|__toESM|_interopDefault|_interopNamespace|_interopNamespaceDefault|_interopRequireDefault|_interopRequireWildcard)$/;

class Reader {
  constructor(text, { ast, scopes }) {
    Object.assign(this, { text, scopes, ...everyNode(ast) });
    this.span = positions(text);
    this.references = new Map();
    for (const scope of scopes.scopes) for (const use of scope.references) this.references.set(use.identifier, use);
    this.tainted = new Set();
    for (const use of scopes.globalScope.through) if (use.isWrite()) this.tainted.add(use.identifier.name);
    for (const use of this.references.values())
      if (use.isWrite() && !this.variable(use.identifier)) this.tainted.add(use.identifier.name);
    this.values = new Map();
    this.found = [];
    this.assets = new Map();
  }

  // ------------------------------------------------------------ names

  isAmbient(definition) {
    for (let node = definition.node; node; node = this.parents.get(node)) if (node.declare) return true;
    return definition.node.type === "TSDeclareFunction";
  }

  variable(identifier) {
    const use = this.references.get(identifier);
    const variable = use?.resolved ?? this.scopes.globalScope.set.get(identifier.name);
    const real = variable?.defs.filter((definition) => !this.isAmbient(definition)) ?? [];
    return real.length ? { variable, definitions: real } : null;
  }

  evaluate(node) {
    node = bare(node);
    if (!node) return null;
    if (!this.values.has(node)) {
      this.values.set(node, null); // a cycle means nothing
      this.values.set(node, this.compute(node));
    }
    return this.values.get(node);
  }

  compute(node) {
    switch (node.type) {
      case "Identifier":
        return this.named(node);
      case "SequenceExpression":
        return this.evaluate(node.expressions.at(-1));
      case "MemberExpression":
        if (this.isMeta(node, "resolve")) return "meta.resolve";
        return member(this.evaluate(node.object), memberName(node));
      case "AwaitExpression":
        return this.evaluate(node.argument)?.match(/^promise:(.*)/)?.[1] ?? null;
      case "ImportExpression": {
        const value = library(literal(node.source));
        return value && `promise:${value}`;
      }
      case "CallExpression":
        return this.called(node);
      default:
        return null;
    }
  }

  called(node) {
    const callee = this.evaluate(node.callee);
    if (/^(require|created)\*?$/.test(callee ?? "")) return library(literal(first(node)));
    if (callee === "createRequire") {
      const place = bare(first(node));
      const here =
        (place?.type === "Identifier" && place.name === "__filename") ||
        this.isMeta(place, "url") ||
        this.isMeta(place, "filename");
      return here ? "created" : "created*";
    }
    const name = bare(node.callee);
    const helper = name?.type === "MemberExpression" && !name.computed ? name.property.name : name?.name;
    const value = INTEROP.test(helper ?? "") ? this.evaluate(first(node)) : null;
    return value?.startsWith("lib:") ? value : null;
  }

  isMeta(node, name) {
    node = bare(node);
    return (
      node?.type === "MemberExpression" &&
      !node.computed &&
      node.object.type === "MetaProperty" &&
      node.object.meta.name === "import" &&
      node.property.name === name
    );
  }

  named(identifier) {
    const found = this.variable(identifier);
    if (!found) {
      return this.tainted.has(identifier.name) ? null : (GLOBALS[identifier.name] ?? null);
    }
    const { variable, definitions } = found;
    if (definitions.length !== 1 || variable.references.some((use) => use.isWrite() && !use.init)) return null;
    return stored(this.defined(definitions[0]));
  }

  defined({ type, node, name, parent }) {
    if (type === "ImportBinding") {
      if (node.type === "TSImportEqualsDeclaration") return library(literal(node.moduleReference.expression));
      const value = library(parent.source.value);
      if (node.type !== "ImportSpecifier") return value;
      return member(value, node.imported.name ?? node.imported.value);
    }
    if (type !== "Variable" || !node.init) return null;
    const value = this.evaluate(node.init);
    if (node.id === name) return value;
    if (node.id.type !== "ObjectPattern") return null;
    const property = node.id.properties.find((each) => each.type === "Property" && each.value === name);
    if (!property) return null;
    return member(value, property.computed ? null : (property.key.name ?? property.key.value));
  }

  // ------------------------------------------------------------ statements and bindings

  isStatement(node) {
    if (!/(Statement|Declaration|DeclareFunction|ExportAssignment)$/.test(node.type)) return false;
    if (node.type === "BlockStatement" || /^TS.*(Parameter|Signature)Declaration$/.test(node.type)) return false;
    const parent = this.parents.get(node);
    if (parent && /^Export/.test(parent.type)) return false;
    if (node.type !== "VariableDeclaration" || !parent) return true;
    const head =
      (parent.type === "ForStatement" && parent.init === node) || (/^For(In|Of)/.test(parent.type) && parent.left === node);
    return !head;
  }

  statement(node) {
    while (node && !this.isStatement(node)) node = this.parents.get(node);
    return node;
  }

  boundBy(node) {
    for (let parent = this.parents.get(node); parent; node = parent, parent = this.parents.get(node)) {
      if (parent.type === "VariableDeclarator") return parent.init === node ? this.patternNames(parent.id) : [];
      const through =
        ["AwaitExpression", "ChainExpression"].includes(parent.type) ||
        (CASTS.has(parent.type) && parent.expression === node) ||
        (parent.type === "MemberExpression" && parent.object === node);
      if (!through) return [];
    }
    return [];
  }

  patternNames(pattern) {
    if (!pattern) return [];
    switch (pattern.type) {
      case "Identifier":
        return [pattern.name];
      case "ObjectPattern":
        return pattern.properties.flatMap((each) => this.patternNames(each.value ?? each));
      case "ArrayPattern":
        return pattern.elements.flatMap((each) => this.patternNames(each));
      case "RestElement":
        return this.patternNames(pattern.argument);
      case "AssignmentPattern":
        return this.patternNames(pattern.left);
      default:
        return [];
    }
  }

  // ------------------------------------------------------------ sites

  add(kind, specifier, node, { base = "file", bindings = [], range = node.range } = {}) {
    const owner = this.statement(node) ?? node;
    // typescript-eslint begins `@decorator export class` at `export`; the export begins at its decorators.
    const begin = Math.min(owner.range[0], ...(owner.declaration?.decorators ?? []).map((each) => each.range[0]));
    const statement = this.span([begin, owner.range[1]]);
    this.found.push({ kind, specifier, base, bindings, span: this.span(range), statement });
  }

  read() {
    for (const node of this.nodes) this.visit(node);
    for (const [node, specifier] of this.assets)
      this.add("asset-url", specifier, node, { bindings: this.boundBy(node) });
    return this.found.sort((a, b) => a.span[0] - b.span[0] || b.span[3] - a.span[3]);
  }

  visit(node) {
    switch (node.type) {
      case "ImportDeclaration": {
        const clause = this.text.slice(node.range[0] + 6, node.source.range[0]).replace(/\/\*[^]*?\*\/|\/\/.*/g, "");
        const kind = node.importKind === "type" ? "import-type" : clause.trim() ? "import" : "side-effect-import";
        this.add(kind, node.source.value, node, { bindings: node.specifiers.map((each) => each.local.name) });
        return;
      }
      case "ExportAllDeclaration":
      case "ExportNamedDeclaration":
        if (node.source) this.add(node.exportKind === "type" ? "import-type" : "export-from", node.source.value, node);
        return;
      case "TSImportEqualsDeclaration":
        if (node.moduleReference.type === "TSExternalModuleReference") {
          const kind = node.importKind === "type" ? "import-type" : "require";
          this.add(kind, literal(node.moduleReference.expression), node, { bindings: [node.id.name] });
        }
        return;
      case "TSImportType": {
        const argument = node.source ?? node.argument.literal;
        const start = this.text.indexOf("import", node.range[0]);
        const end = this.text.indexOf(")", (node.options ?? argument).range[1]) + 1;
        this.add("import-type", argument.value, node, { range: [start, end] });
        return;
      }
      case "ImportExpression":
        this.add("dynamic-import", literal(node.source), node, { bindings: this.boundBy(node) });
        return;
      case "CallExpression":
        this.visitCall(node);
        return;
      case "NewExpression":
        this.visitNew(node);
    }
  }

  visitCall(node) {
    const callee = this.evaluate(node.callee);
    const bindings = this.boundBy(node);
    const base = callee?.endsWith("*") ? "other" : "file";
    if (/^(require|created)\*?$/.test(callee ?? "")) this.add("require", literal(first(node)), node, { base, bindings });
    else if (/^(meta\.)?resolve\*?$/.test(callee ?? ""))
      this.add("require-resolve", literal(first(node)), node, { base, bindings });
    else if (callee === "createRequire") this.add("create-require", null, node, { bindings });
  }

  visitNew(node) {
    const callee = this.evaluate(node.callee);
    if (callee === "URL" && this.isAsset(node)) {
      const owner = this.workerOver(node);
      if (!owner) this.assets.set(node, literal(first(node)));
    }
    if (callee !== "Worker") return;
    const argument = bare(first(node));
    const bindings = this.boundBy(node);
    if (argument?.type === "NewExpression" && this.evaluate(argument.callee) === "URL" && this.isAsset(argument))
      this.add("worker", literal(first(argument)), node, { bindings });
    else {
      const options = bare(node.arguments[1]);
      const code = options?.type === "ObjectExpression" && options.properties.some((each) => (each.key?.name ?? each.key?.value) === "eval");
      this.add("worker", code ? null : literal(argument), node, { base: "other", bindings });
    }
  }

  isAsset(node) {
    return first(node) && node.arguments.length > 1 && this.isMeta(node.arguments[1], "url");
  }

  workerOver(node) {
    let parent = this.parents.get(node);
    let child = node;
    while (parent && CASTS.has(parent.type)) [child, parent] = [parent, this.parents.get(parent)];
    return parent?.type === "NewExpression" && parent.arguments[0] === child && this.evaluate(parent.callee) === "Worker";
  }
}

function answer({ id, language, path, source }) {
  try {
    const raw = path ? readFileSync(path) : Buffer.from(source, "base64");
    const text = raw.toString("utf8");
    if (!Buffer.from(text, "utf8").equals(raw)) return { id, error: "not UTF-8" };
    // A byte order mark is white space to the parsers, but only the very start of a text may be a hashbang.
    const readable = text.replace(/^\uFEFF#!/, "\uFEFF//");
    const parsed = language === "javascript" ? parseJavaScript(readable) : parseTypeScript(readable, language);
    return { id, references: new Reader(readable, parsed).read() };
  } catch (error) {
    return { id, error: String(error.message ?? error) };
  }
}

for await (const line of createInterface({ input: process.stdin }))
  if (line.trim()) process.stdout.write(JSON.stringify(answer(JSON.parse(line))) + "\n");
