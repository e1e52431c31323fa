// Independent readers of exported names, for comparison with the product.
//
// Modules of ECMAScript: es-module-lexer; what they ask of others: acorn. CommonJS: cjs-module-lexer, which knows no
// scopes and so is shown every `exports` and `module` that is declared in the file under another name; and a reader on
// acorn and eslint-scope, which works backwards from the objects that are written to. TypeScript and JSX: the symbols
// that the compiler's binder gives the file.
//
// usage: MODULES=<folder with node_modules> node exports.mjs   (JSON lines in, JSON lines out)
//   in:  {"id", "language": "javascript|jsx|typescript|tsx", "path"} or {"id", "language", "source": base64}
//   out: {"id", "system": "esm", "names", "stars", "asked": [[specifier, name, [locals]]]}
//        {"id", "system": "commonjs", "names", "stars", "lexed", "relexed", "refused"}
//        {"id", "system": "typescript", "names"}
//        {"id", "error"}
//   names are sorted and unique, `*` and `export=` among them; stars are the specifiers behind `*`

import { readFileSync } from "node:fs";
import { createRequire } from "node:module";
import { createInterface } from "node:readline";
import { pathToFileURL } from "node:url";

const load = createRequire(process.env.MODULES + "/package.json");
const acorn = load("acorn");
const eslintScope = load("eslint-scope");
const modern = await import(pathToFileURL(load.resolve("es-module-lexer")));
const common = load("cjs-module-lexer");
await modern.init;
await common.init?.();

const sorted = (names) => [...new Set(names)].sort();
const nameOf = (node) => (node.type === "Literal" ? node.value : node.name);

function everyNode(ast) {
  const nodes = [];
  const stack = [ast];
  while (stack.length) {
    const node = stack.pop();
    nodes.push(node);
    for (const key in node) {
      if (key === "parent") continue;
      for (const child of [node[key]].flat()) {
        if (child && typeof child.type === "string" && child !== node.parent) {
          child.parent = node;
          stack.push(child);
        }
      }
    }
  }
  return nodes;
}

// ---------------------------------------------------------------- ECMAScript

function readModule(text) {
  const { body } = acorn.parse(text, { ecmaVersion: "latest", sourceType: "module", allowHashBang: true });
  const [, exported] = modern.parse(text);
  const stars = exported.filter((one) => one.type === "reexport-all");
  const asked = new Map();
  const ask = (specifier, name, locals) => {
    const key = JSON.stringify([specifier, name]);
    asked.set(key, [...(asked.get(key) ?? []), ...locals]);
  };
  for (const node of body) {
    if (node.type === "ImportDeclaration") {
      for (const one of node.specifiers) {
        if (one.type === "ImportDefaultSpecifier") ask(node.source.value, "default", [one.local.name]);
        if (one.type === "ImportSpecifier") ask(node.source.value, nameOf(one.imported), [one.local.name]);
      }
    } else if (node.type === "ExportNamedDeclaration" && node.source) {
      for (const one of node.specifiers) ask(node.source.value, nameOf(one.local), []);
    }
  }
  return {
    system: "esm",
    names: sorted(exported.map((one) => (one.type === "reexport-all" ? "*" : one.name))),
    stars: sorted(stars.map((one) => one.from)),
    asked: [...asked].map(([key, locals]) => [...JSON.parse(key), locals.sort()]).sort(),
  };
}

// ---------------------------------------------------------------- CommonJS

const text = (node) => {
  if (node?.type === "Literal" && typeof node.value === "string") return node.value;
  if (node?.type === "TemplateLiteral" && node.expressions.length === 0) return node.quasis[0].value.cooked;
  return null;
};
const member = (node) => (node.computed ? text(node.property) : node.property.name ?? null);
const WRAPPERS = /^(__importStar|__toESM|_interopNamespace|_interopRequireWildcard|_interop_require_wildcard)$/;
const isCall = (node) => node?.type === "CallExpression";
const last = (node) => (node?.type === "SequenceExpression" ? node.expressions.at(-1) : node);
const called = (node) => {
  const callee = last(node.callee);
  if (callee.type === "Identifier") return callee.name;
  return callee.type === "MemberExpression" ? member(callee) : null;
};

function readCommon(source) {
  const ast = acorn.parse(source, {
    ecmaVersion: "latest",
    sourceType: "script",
    ranges: true,
    allowHashBang: true,
    allowReturnOutsideFunction: true,
  });
  const options = { ecmaVersion: 2026, sourceType: "script", nodejsScope: true, ignoreEval: true };
  const scopes = eslintScope.analyze(ast, options);
  const nodes = everyNode(ast);
  const variables = new Map();
  const bound = [];
  for (const scope of scopes.scopes) {
    for (const reference of scope.references) variables.set(reference.identifier, reference.resolved);
    for (const variable of scope.variables) {
      if (variable.name !== "exports" && variable.name !== "module") continue;
      bound.push(...variable.identifiers, ...variable.references.map((one) => one.identifier));
    }
  }
  const free = (node, name) => node?.type === "Identifier" && node.name === name && !variables.get(node);
  const references = scopes.scopes.flatMap((scope) => scope.references);
  const written = (name) => references.filter((one) => free(one.identifier, name) && one.isWrite());
  const requires = written("require").length === 0;
  const modules = written("module").length === 0;
  const isModuleExports = (node) =>
    modules && node?.type === "MemberExpression" && member(node) === "exports" && free(node.object, "module");
  const isAssignment = (node) => node?.type === "AssignmentExpression" && node.operator === "=";
  const keeps = ({ identifier }) => {
    let assignment = identifier.parent;
    if (!isAssignment(assignment) || assignment.left !== identifier) return false;
    for (let right = assignment.right; right; right = isAssignment(right) ? right.right : null) {
      if (isModuleExports(right) || (isAssignment(right) && isModuleExports(right.left))) return true;
    }
    while (isAssignment(assignment.parent)) {
      assignment = assignment.parent;
      if (isModuleExports(assignment.left)) return true;
    }
    return false;
  };
  const exportsKept = written("exports").every(keeps);

  const required = (node) => {
    if (!isCall(node) || !requires || !free(node.callee, "require")) return null;
    return text(node.arguments[0]);
  };
  const constant = (node) => {
    const variable = node?.type === "Identifier" ? variables.get(node) : null;
    if (!variable || variable.identifiers.length !== 1) return null;
    const writes = variable.references.filter((one) => one.isWrite() && !one.init);
    return writes.length === 0 ? variable : null;
  };
  const value = (variable) => {
    const [definition] = variable.defs;
    if (definition.type === "Variable" && definition.node.id.type === "Identifier") return definition.node.init;
    if (definition.type !== "Parameter") return null;
    const at = definition.node.params.indexOf(definition.name);
    const call = definition.node.parent;
    if (at < 0 || !isCall(call) || last(call.callee) !== definition.node) return null;
    return call.arguments.slice(0, at).some((one) => one.type === "SpreadElement") ? null : call.arguments[at];
  };
  const copies = new Set();
  for (const node of nodes) {
    const right = isAssignment(node) && isModuleExports(node.left) ? node.right : null;
    if (isCall(right) && called(right) === "__toCommonJS") copies.add(constant(right.arguments[0]));
  }
  copies.delete(null);
  const known = new Map();
  const isExports = (node) => {
    if (!node) return false;
    if (!known.has(node)) {
      known.set(node, false);
      known.set(node, decide(node));
    }
    return known.get(node);
  };
  const decide = (node) => {
    if (isModuleExports(node)) return true;
    if (free(node, "exports")) return exportsKept;
    if (isAssignment(node)) {
      return isModuleExports(node.left) || (free(node.left, "exports") && isExports(node.right));
    }
    const variable = constant(node);
    return variable !== null && (copies.has(variable) || isExports(value(variable)));
  };

  const names = [];
  const stars = [];
  const star = (specifier) => specifier !== null && specifier !== undefined && (names.push("*"), stars.push(specifier));
  const keys = (node) => {
    for (const one of node?.type === "ObjectExpression" ? node.properties : []) {
      if (one.type === "SpreadElement") {
        star(required(one.argument));
        continue;
      }
      const { key } = one;
      const plain = !one.computed && (key.type === "Identifier" ? key.name : key.type === "Literal" ? String(key.value) : null);
      const name = one.computed ? text(key) : plain;
      const prototype = name === "__proto__" && !one.computed && !one.shorthand && !one.method && one.kind === "init";
      if (name !== null && !prototype) names.push(name);
    }
  };
  const targets = (pattern) => {
    if (pattern.type === "MemberExpression") return [pattern];
    if (pattern.type === "ArrayPattern") return pattern.elements.filter(Boolean).flatMap(targets);
    if (pattern.type === "AssignmentPattern") return targets(pattern.left);
    if (pattern.type === "RestElement") return targets(pattern.argument);
    if (pattern.type === "ObjectPattern") return pattern.properties.flatMap((one) => targets(one.value ?? one));
    return [];
  };
  const loopedModule = (node, key) => {
    for (let at = node.parent; at; at = at.parent) {
      let variable = null;
      let over = null;
      if (at.type === "ForInStatement") {
        variable = at.left.type === "VariableDeclaration" ? at.left.declarations[0].id : at.left;
        over = at.right;
      } else if (isCall(at) && called(at) === "forEach" && isCall(at.callee.object) && called(at.callee.object) === "keys") {
        variable = at.arguments[0]?.params?.[0];
        over = at.callee.object.arguments[0];
      }
      if (variable?.type !== "Identifier" || variable.name !== key) continue;
      let init = constant(over) && value(constant(over));
      if (isCall(init) && WRAPPERS.test(called(init))) {
        [init] = init.arguments;
      }
      return required(init);
    }
    return null;
  };
  const replaced = (node) => {
    let { right } = node;
    while (isAssignment(right)) {
      if (isModuleExports(right.left)) return;
      right = right.right;
    }
    if (isExports(right) || (right.type === "Identifier" && free(right, "exports"))) return;
    if (isCall(right) && called(right) === "__toCommonJS" && constant(right.arguments[0])) return;
    if (required(right) !== null) star(required(right));
    else if (right.type === "ObjectExpression") keys(right);
    else names.push("export=");
  };
  for (const node of nodes) {
    if (isAssignment(node) && isModuleExports(node.left)) replaced(node);
    const isLoop = node.type === "ForInStatement" || node.type === "ForOfStatement";
    for (const target of isAssignment(node) || isLoop ? targets(node.left) : []) {
      if (!isExports(target.object)) continue;
      if (member(target) !== null) names.push(member(target));
      else if (target.computed && target.property.type === "Identifier") star(loopedModule(target, target.property.name));
    }
    if (!isCall(node)) continue;
    const [first, second] = node.arguments;
    const callee = last(node.callee);
    const onObject = callee.type === "MemberExpression" && callee.object.type === "Identifier" && callee.object.name === "Object";
    const name = called(node);
    if (onObject && isExports(first)) {
      if (name === "defineProperty") {
        if (text(second) !== null) names.push(text(second));
        else if (second?.type === "Identifier") star(loopedModule(node, second.name));
      } else if (name === "defineProperties") keys(second);
      else if (name === "assign") {
        for (const one of node.arguments.slice(1)) {
          keys(one);
          star(required(one));
        }
      }
    } else if ((name === "__export" || name === "_export") && node.arguments.length === 2 && isExports(first)) keys(second);
    else if (["__export", "__exportStar", "_export_star", "_exportStar", "__reExport"].includes(name)) {
      if (node.arguments.length === 1 && name[1] !== "r" && name !== "_export_star") star(required(first));
      node.arguments.forEach((one, at) => at > 0 && isExports(one) && star(required(node.arguments[at - 1])));
    }
  }

  // The lexer knows no scopes: what is no export object gets another name of the same length.
  const shown = source.split("");
  const hidden = exportsKept ? bound : [...bound, ...references.map((one) => one.identifier).filter((one) => free(one, "exports"))];
  for (const { range } of hidden) shown[range[0]] = "X";
  let lexed = { exports: [], reexports: [] };
  try {
    lexed = common.parse(shown.join(""));
  } catch (error) {
    lexed = { exports: [], reexports: [], error: String(error) };
  }
  return {
    system: "commonjs",
    names: sorted(names),
    stars: sorted(stars),
    lexed: sorted(lexed.exports),
    relexed: sorted(lexed.reexports),
    refused: lexed.error ?? null,
  };
}

// ---------------------------------------------------------------- TypeScript

function readTypeScript(source, language) {
  const ts = load("typescript");
  const name = { jsx: "/file.jsx", typescript: "/file.ts", tsx: "/file.tsx" }[language];
  const file = ts.createSourceFile(name, source, ts.ScriptTarget.Latest, true);
  const host = {
    getSourceFile: (asked) => (asked === name ? file : undefined),
    getDefaultLibFileName: () => "/lib.d.ts",
    getCurrentDirectory: () => "/",
    getCanonicalFileName: (one) => one,
    useCaseSensitiveFileNames: () => true,
    getNewLine: () => "\n",
    fileExists: (asked) => asked === name,
    readFile: () => undefined,
    writeFile: () => {},
  };
  const settings = { noLib: true, noResolve: true, allowJs: true, target: ts.ScriptTarget.Latest, jsx: ts.JsxEmit.Preserve };
  ts.createProgram([name], settings, host).getTypeChecker();
  // The binder's own names begin with two underscores; names of the file that do are kept with a third.
  const keys = [...(file.symbol?.exports?.keys() ?? [])];
  const names = keys.map((key) => (key === "__export" ? "*" : ts.unescapeLeadingUnderscores(key)));
  return { system: "typescript", names: sorted(names) };
}

function answer({ language, path, source }) {
  const bytes = path ? readFileSync(path) : Buffer.from(source, "base64");
  const content = bytes.toString("utf8").replace(/^\ufeff/, "");
  if (language !== "javascript") return readTypeScript(content, language);
  try {
    const { body } = acorn.parse(content, { ecmaVersion: "latest", sourceType: "module", allowHashBang: true });
    if (body.some((node) => /^(Import|Export)/.test(node.type))) return readModule(content);
  } catch {
    // no module
  }
  return readCommon(content);
}

for await (const line of createInterface({ input: process.stdin })) {
  const request = JSON.parse(line);
  let result;
  try {
    result = answer(request);
  } catch (error) {
    result = { error: String(error) };
  }
  process.stdout.write(JSON.stringify({ id: request.id, ...result }) + "\n");
}
