// Compiles the scripts of lua/ to JavaScript for the in-memory Redis of src/tools/testing/: nothing is
// parsed or evaluated at run time. Parser: luaparse.
//
// An included part is compiled once, as a function, however many scripts include it. Its text sees the
// local variables of the script around it, so those that one piece of text declares and another one
// uses are variables of the module: scripts run one at a time, and each sets what it declares. `verify`
// makes sure that this gives Lua's meaning. A part with one includer is compiled in place.
//
// A function that returns one value returns it; one that returns several returns an array of them.
// Which is which is known by name. Whatever else of Lua the scripts come to use is an error of the
// build.
import luaparse from "luaparse";

/** How a piece of text marks an included part, by its path below lua/. */
export const includeMark = (path) => `INCLUDE(${JSON.stringify(path)})`;
const MARK = "INCLUDE";

/** Functions of Lua that return several values, by the names that scripts call them by. */
const SEVERAL = ["match", "find", "unpack"];
/** What each library offers: see lua-runtime.ts, and `redis` in memory-redis.ts. */
const LIBRARIES = {
  string: ["sub", "byte", "lower", "match", "find", "format"],
  table: ["insert", "remove", "concat"],
  math: ["max", "min", "ceil", "floor", "huge"],
  redis: ["call", "pcall", "error_reply", "acl_check_cmd", "log", "LOG_WARNING"],
};
/** How many arguments the functions of lua-runtime.ts take at most. */
const MOST_ARGUMENTS = {
  tonumber: 1,
  tostring: 1,
  type: 1,
  unpack: 3,
  ipairs: 1,
  sub: 3,
  byte: 2,
  lower: 1,
  match: 3,
  find: 4,
  gmatch: 2,
  insert: 3,
  remove: 2,
  concat: 2,
  ceil: 1,
  floor: 1,
};
const GLOBALS = ["tonumber", "tostring", "type", "unpack"];
const INPUTS = ["KEYS", "ARGV"];
/** Words of JavaScript that are names in Lua. */
const RESERVED = new Set(
  "await case catch class const continue default delete enum export extends finally import in instanceof let new null static super switch this throw try typeof undefined var void with yield arguments eval".split(
    " ",
  ),
);
const COMPARISONS = { "==": "===", "~=": "!==", "<": "lt", "<=": "le", ">": "lt", ">=": "le" };

/**
 * @param scripts each with its `name`, `sha` and `text`, where marks stand for included parts
 * @param parts the text of each part, by its path
 * @returns the module's code, after its imports
 */
export function compileScripts(scripts, parts) {
  const trees = new Map([...parts].map(([path, text]) => [path, parse(text, path)]));
  const roots = scripts.map((script) => ({ ...script, tree: parse(script.text, script.name) }));

  const uses = new Map();
  const count = (tree) =>
    eachInclude(tree, (path) => {
      uses.set(path, (uses.get(path) ?? 0) + 1);
      if (uses.get(path) === 1) count(trees.get(path));
    });
  for (const { tree } of roots) count(tree);
  // What is left of inclusion afterwards are the parts with several includers.
  const inPlace = (node) => splice(node, (path) => (uses.get(path) === 1 ? trees.get(path) : null));
  for (const tree of [...trees.values(), ...roots.map(({ tree }) => tree)]) inPlace(tree);
  const shared = [...uses.keys()].filter((path) => uses.get(path) > 1);

  // The declarations of variables that another piece of text uses, and their names.
  const units = [...shared.map((path) => trees.get(path)), ...roots.map(({ tree }) => tree)];
  const exposed = new Set();
  for (const { tree } of roots)
    walk(tree, { trees, used: (by, isElsewhere) => void (isElsewhere && exposed.add(by)) });
  const common = new Set([...exposed].map((by) => by.identifier?.name ?? by.name));
  for (const { name, tree } of roots) verify(name, tree, trees, exposed);

  const several = namesOfSeveral(units);
  const emitter = (where, isPart) => new Emitter({ where, isPart, common, exposed, several, trees });
  const functions = shared.map((path) => {
    const body = emitter(path, true).chunk(trees.get(path));
    return `const ${nameOf(path)} = () => {\n${body}};\n`;
  });
  const mains = roots.map(
    ({ name, sha, tree }) => `  ["${sha}", () => {\n${emitter(name, false).chunk(tree)}}], // ${name}\n`,
  );
  const variables = [...INPUTS, "redis", "_", ...[...common].sort()].map(safe);
  return `let ${variables.join(", ")};

${functions.join("")}
const scripts = new Map([
${mains.join("")}]);

/** Runs the script of this SHA; undefined: none of them has it. */
export const scriptOf = (sha) => scripts.get(sha);

export function runScript(main, api, keys, argv) {
  [redis, KEYS, ARGV] = [api, keys, argv];
  return main();
}
`;
}

function parse(text, where) {
  const bad = /[^\n -~]/.exec(text);
  if (bad) throw new Error(`lua/${where}: the compiler takes ASCII only: ${bad[0]}`);
  try {
    return luaparse.parse(text, { luaVersion: "5.1", comments: false, encodingMode: "pseudo-latin1" });
  } catch (error) {
    throw new Error(`lua/${where}: ${error.message}`);
  }
}

const nameOf = (path) => `part_${path.replace(/\.lua$/, "").replace(/\W+/g, "_")}`;
const safe = (name) => (RESERVED.has(name) ? `${name}_` : name);

/** The part that a statement includes, or null. */
function included(statement) {
  const call = statement.type === "CallStatement" ? statement.expression : null;
  if (call?.base.type !== "Identifier" || call.base.name !== MARK) return null;
  return JSON.parse(call.arguments[0].raw);
}

const childrenOf = (node) =>
  Object.entries(node).flatMap(([key, value]) => {
    if (key === "type" || value === null || typeof value !== "object") return [];
    return (Array.isArray(value) ? value : [value]).filter((child) => typeof child?.type === "string");
  });

function eachInclude(node, use) {
  const path = included(node);
  if (path !== null) use(path);
  else for (const child of childrenOf(node)) eachInclude(child, use);
}
/** Replaces marks by the statements of the part that `partOf` gives. */
function splice(node, partOf) {
  for (const child of childrenOf(node)) splice(child, partOf);
  if (!Array.isArray(node.body)) return;
  node.body = node.body.flatMap((statement) => {
    const path = included(statement);
    const part = path === null ? null : partOf(path);
    if (part) splice(part, partOf);
    return part ? part.body : [statement];
  });
}

/**
 * Resolves names as Lua does, with included parts in place. `free` gets the names that nothing
 * declares; `declared` each declaration, and what is around it; `used` the declaration of each name
 * that is used, whether it is in another piece of text, and whether it is outside of a function that
 * uses it.
 */
function walk(tree, { trees, free = () => {}, declared = () => {}, used = () => {} }) {
  const scopes = [];
  /** The piece of text that is read, and those that include it. */
  const units = [tree];
  let depth = 0;
  const declare = (by, { name } = by) => {
    const unit = units.at(-1);
    declared(name, by, { scopes, includers: units.slice(0, -1), depth });
    scopes.at(-1).set(name, { by, unit, depth });
  };
  const use = (name) => {
    const known = scopes.findLast((names) => names.has(name))?.get(name);
    if (known) used(known.by, known.unit !== units.at(-1), known.depth < depth);
    else if (!isGlobal(name)) free(name);
  };
  const all = (nodes) => {
    for (const node of nodes) visit(node);
  };
  const inner = (statements, variables = []) => {
    scopes.push(new Map());
    for (const one of variables) declare(one);
    all(statements);
    scopes.pop();
  };
  const part = (path) => {
    units.push(trees.get(path));
    all(units.at(-1).body);
    units.pop();
  };
  const visit = (node) => {
    const path = included(node);
    if (path !== null) return part(path);
    switch (node.type) {
      case "Identifier":
        return use(node.name);
      case "MemberExpression":
        return visit(node.base);
      case "TableKeyString":
        return visit(node.value);
      case "LocalStatement":
        all(node.init);
        for (const one of node.variables) declare(one);
        return;
      case "FunctionDeclaration":
        if (node.identifier) declare(node, node.identifier);
        depth++;
        inner(node.body, node.parameters);
        depth--;
        return;
      case "ForNumericStatement":
        all([node.start, node.end, ...(node.step ? [node.step] : [])]);
        return inner(node.body, [node.variable]);
      case "ForGenericStatement":
        all(node.iterators);
        return inner(node.body, node.variables);
      case "IfClause":
      case "ElseifClause":
      case "WhileStatement":
        visit(node.condition);
        return inner(node.body);
      case "ElseClause":
      case "DoStatement":
        return inner(node.body);
      case "RepeatStatement":
        // The condition sees the variables of the body.
        return inner([...node.body, node.condition]);
      default:
        all(childrenOf(node));
    }
  };
  inner(tree.body);
}

const isGlobal = (name) =>
  name in LIBRARIES || GLOBALS.includes(name) || INPUTS.includes(name) || name === "ipairs";

/**
 * A script as Redis gets it declares every name that it uses. A variable of the module stands for one
 * of the script at a time: no other one of its name is declared where it can be seen, nor later if a
 * function declares or keeps it. A script may declare the same function twice.
 */
function verify(where, tree, trees, exposed) {
  const declarations = new Map();
  const kept = new Set();
  const isSame = (one, other) => one === other && one.type === "FunctionDeclaration";
  walk(tree, {
    trees,
    free: (name) => {
      throw new Error(`lua/${where}: nothing declares ${name}`);
    },
    declared: (name, by, { scopes, includers, depth }) => {
      if (depth > 0) kept.add(by);
      if (!exposed.has(by)) return;
      for (const names of scopes) {
        const other = names.get(name);
        // An includer's own variable of this name would still be meant after the part.
        const isHidden = exposed.has(other?.by) ? names !== scopes.at(-1) : includers.includes(other?.unit);
        if (isHidden && !isSame(other.by, by))
          throw new Error(`lua/${where}: ${name} hides a variable that parts share`);
      }
      declarations.set(name, [...(declarations.get(name) ?? []), by]);
    },
    used: (by, _, isKept) => void (isKept && kept.add(by)),
  });
  for (const [name, all] of declarations)
    if (all.some((by, i) => kept.has(by) && all.slice(i).some((later) => later !== by)))
      throw new Error(`lua/${where}: a function has a variable ${name}, and parts share a later one`);
}

/** The names of functions that return several values. */
function namesOfSeveral(trees) {
  const bodies = [];
  const find = (node, name) => {
    if (node.type === "FunctionDeclaration") bodies.push({ name: node.identifier?.name ?? name, node });
    if (node.type === "AssignmentStatement" && node.init[0]?.type === "FunctionDeclaration")
      return find(node.init[0], node.variables[0].name);
    for (const child of childrenOf(node)) find(child);
  };
  for (const tree of trees) find(tree);
  const several = new Set(SEVERAL);
  const returnsOf = (node) =>
    childrenOf(node).flatMap((child) => {
      if (child.type === "FunctionDeclaration") return [];
      return child.type === "ReturnStatement" ? [child] : returnsOf(child);
    });
  for (let size = -1; size !== several.size; ) {
    size = several.size;
    for (const { name, node } of bodies)
      for (const { arguments: values } of returnsOf(node))
        if (values.length > 1 || (values.length === 1 && isSeveral(values[0], several))) several.add(name);
  }
  return several;
}

const calleeOf = ({ base }) => (base.type === "Identifier" ? base.name : base.identifier?.name);
const isCall = ({ type }) => type === "CallExpression" || type === "StringCallExpression";
/** `string.byte` has several values only if a range is asked for, which no script does. */
const isSeveral = (e, several) => isCall(e) && several.has(calleeOf(e));

class Emitter {
  #scopes = [];
  #unique = 0;
  /** Does the function around return several values? None: the script itself. */
  #functions = [];

  constructor(shape) {
    Object.assign(this, shape);
  }

  chunk(tree) {
    return this.#scope(() => this.#block(tree.body));
  }

  #fail(node) {
    throw new Error(`lua/${this.where}: the compiler has no ${node.type ?? node}`);
  }

  /** The variable's name in JavaScript. `by`: its declaration. */
  #declare(by, { name } = by) {
    const { names } = this.#scopes.at(-1);
    const isKnown = this.#scopes.some((scope) => scope.names.has(name));
    const isTaken = isKnown || this.common.has(name) || isGlobal(name) || name === "_";
    const made = isTaken && !this.exposed.has(by) ? `${name}$${++this.#unique}` : safe(name);
    names.set(name, made);
    return made;
  }

  #lookup(name) {
    const scope = this.#scopes.findLast(({ names }) => names.has(name));
    return scope?.names.get(name) ?? (this.common.has(name) ? safe(name) : null);
  }

  #scope(emit) {
    this.#scopes.push({ names: new Map() });
    const text = emit();
    this.#scopes.pop();
    return text;
  }

  /** The statements of an inner block, in braces. `head` and `end`: what comes first and last. */
  #inner(statements, head = () => "", end = () => "") {
    return this.#scope(() => {
      const first = head();
      const body = this.#block(statements);
      return `{\n${first}${body}${end()}}`;
    });
  }

  #block(statements) {
    return statements.map((one) => `${this.#statement(one)}\n`).join("");
  }

  #statement(s) {
    const path = included(s);
    if (path !== null) return this.#include(path);
    switch (s.type) {
      case "LocalStatement":
        return this.#local(s);
      case "AssignmentStatement":
        return this.#assign(s);
      case "CallStatement":
        return `${this.#call(s.expression)};`;
      case "ReturnStatement":
        return this.#return(s);
      case "IfStatement":
        return s.clauses
          .map(({ condition, body }) => {
            const test = condition ? `if (${this.#test(condition)}) ` : "";
            return test + this.#inner(body);
          })
          .join(" else ");
      case "DoStatement":
        return this.#inner(s.body);
      case "WhileStatement":
        return `while (${this.#test(s.condition)}) ${this.#inner(s.body)}`;
      case "RepeatStatement":
        return `for (;;) ${this.#inner(s.body, undefined, () => `if (${this.#test(s.condition)}) break;\n`)}`;
      case "BreakStatement":
        return "break;";
      case "ForNumericStatement":
        return this.#count(s);
      case "ForGenericStatement":
        return this.#iterate(s);
      case "FunctionDeclaration": {
        if (!s.isLocal) this.#fail("global function");
        const isCommon = this.exposed.has(s);
        const name = this.#declare(s, s.identifier);
        return `${isCommon ? "" : "const "}${name} = ${this.#function(s, s.identifier.name)};`;
      }
      default:
        return this.#fail(s);
    }
  }

  #include(path) {
    const call = `${nameOf(path)}()`;
    if (!canReturn(this.trees.get(path), this.trees)) return `${call};`;
    const within = this.#functions.at(-1);
    if (within?.isSeveral) this.#fail("return of a part from a function of several values");
    const got = `r$${++this.#unique}`;
    return `const ${got} = ${call};\nif (${got}) return ${within || !this.isPart ? `${got}[0]` : got};`;
  }

  #return({ arguments: values }) {
    const within = this.#functions.at(-1);
    if (within?.isSeveral) {
      const [only] = values;
      if (values.length === 1 && this.#isSeveral(only)) return `return ${this.#call(only)};`;
      return `return ${this.#list(values)};`;
    }
    if (values.length > 1) this.#fail("return of several values");
    const value = values.length === 0 ? "undefined" : this.#expression(values[0]);
    return `return ${within || !this.isPart ? value : `[${value}]`};`;
  }

  #local({ variables, init }) {
    for (const [i, value] of init.entries()) this.#keepsName(value, variables[i]?.name);
    // Values first: they mean what the names meant before.
    if (variables.length === 1 || init.length === 0) {
      const value = init.length === 0 ? "undefined" : this.#expression(init[0]);
      return variables.map((by) => this.#declaration(by, value)).join(" ");
    }
    const isSpread = init.length === 1 && this.#isSeveral(init[0]);
    const isCommon = variables.map((by) => this.exposed.has(by));
    const isSimple = init.length === variables.length && !isCommon.some((one) => one !== isCommon[0]);
    if (isSimple && !isCommon[0]) {
      const values = init.map((one) => this.#expression(one));
      return `let ${variables.map((by, i) => `${this.#declare(by)} = ${values[i]}`).join(", ")};`;
    }
    const values = isSpread ? this.#call(init[0]) : this.#list(init);
    const names = variables.map((by) => this.#declare(by));
    if (!isCommon.includes(true)) return `let [${names.join(", ")}] = ${values};`;
    const lets = names.filter((_, i) => !isCommon[i]);
    return `${lets.length > 0 ? `let ${lets.join(", ")};\n` : ""}[${names.join(", ")}] = ${values};`;
  }

  #declaration(by, value) {
    return `${this.exposed.has(by) ? "" : "let "}${this.#declare(by)} = ${value};`;
  }

  /** A function of several values is known by its name. */
  #keepsName(value, name) {
    const own = value.type === "Identifier" ? value.name : value.identifier?.name;
    const isName = value.type === "Identifier" || value.type === "MemberExpression";
    if (isName && own !== name && this.several.has(own)) this.#fail(`other name of ${own}`);
  }

  #assign({ variables, init }) {
    for (const [i, value] of init.entries()) this.#keepsName(value, variables[i]?.name);
    if (variables.length === 1) {
      const [target] = variables;
      const [value] = init;
      const text =
        value.type === "FunctionDeclaration" ? this.#function(value, target.name) : this.#expression(value);
      return this.#set(target, text);
    }
    const values = init.length === 1 && this.#isSeveral(init[0]) ? this.#call(init[0]) : this.#list(init);
    if (variables.every(({ type }) => type === "Identifier"))
      return `[${variables.map(({ name }) => this.#known(name)).join(", ")}] = ${values};`;
    const got = `m$${++this.#unique}`;
    return `const ${got} = ${values};\n${variables.map((one, i) => this.#set(one, `${got}[${i}]`)).join("\n")}`;
  }

  #known(name) {
    return this.#lookup(name) ?? this.#fail(`global variable ${name}`);
  }

  #set(target, value) {
    if (target.type === "Identifier") return `${this.#known(target.name)} = ${value};`;
    return `${this.#indexed(target.base)}.set(${this.#key(target)}, ${value});`;
  }

  /** What is indexed: a table, or an error. */
  #indexed(e) {
    const text = this.#expression(e);
    return INPUTS.includes(text) ? text : `L.indexed(${text})`;
  }

  #key(e) {
    return e.type === "MemberExpression" ? JSON.stringify(e.identifier.name) : this.#expression(e.index);
  }

  #count(s) {
    const [start, end] = [this.#bound(s.start, "initial value"), this.#bound(s.end, "limit")];
    const step = s.step ? this.#expression(s.step) : "1";
    if (s.step && s.step.type !== "NumericLiteral") this.#fail("step that is no literal");
    const n = ++this.#unique;
    const head = `let i$${n} = ${start}, e$${n} = ${end}; i$${n} <= e$${n}; i$${n} += ${step}`;
    return `for (${head}) ${this.#inner(s.body, () => `${this.#declaration(s.variable, `i$${n}`)}\n`)}`;
  }

  /** The first or last number of a loop. */
  #bound(e, what) {
    const text = this.#expression(e);
    return isNumber(e) ? text : `L.bound(${text}, "${what}")`;
  }

  #iterate(s) {
    const [call] = s.iterators;
    const of = isCall(call) ? calleeOf(call) : "";
    if (s.iterators.length !== 1 || (of !== "ipairs" && of !== "gmatch"))
      this.#fail("loop over anything else");
    const over = `L.${of}(${call.arguments.map((one) => this.#expression(one)).join(", ")})`;
    const n = ++this.#unique;
    const body = this.#inner(s.body, () =>
      s.variables.map((by, i) => `${this.#declaration(by, `v$${n}[${i}]`)}\n`).join(""),
    );
    return `for (const v$${n} of ${over}) ${body}`;
  }

  #function(e, name) {
    const other = e.parameters.find(({ type }) => type !== "Identifier");
    if (other) this.#fail(other);
    this.#functions.push({ isSeveral: this.several.has(name) });
    const params = [];
    const body = this.#inner(e.body, () =>
      e.parameters
        .map((by) => {
          const made = this.#declare(by);
          params.push(this.exposed.has(by) ? `${by.name}$${++this.#unique}` : made);
          return this.exposed.has(by) ? `${made} = ${params.at(-1)};\n` : "";
        })
        .join(""),
    );
    this.#functions.pop();
    // A function of several values returns an array at its end too.
    const end = this.several.has(name) ? "return [];\n}" : "}";
    return `(${params.join(", ")}) => ${body.slice(0, -1)}${end}`;
  }

  #isSeveral(e) {
    return isSeveral(e, this.several);
  }

  /** All values, as an array. */
  #list(values) {
    return `[${this.#arguments(values)}]`;
  }

  #arguments(values) {
    return values
      .map((one, i) =>
        i === values.length - 1 && this.#isSeveral(one) ? `...${this.#call(one)}` : this.#expression(one),
      )
      .join(", ");
  }

  /** A call, with all its values if it has several. */
  #call(e) {
    if (!isCall(e) || e.base.indexer === ":") this.#fail(e);
    const values = e.type === "StringCallExpression" ? [e.argument] : e.arguments;
    if (values.length > (MOST_ARGUMENTS[calleeOf(e)] ?? 99))
      this.#fail(`${calleeOf(e)} of ${values.length} values`);
    return `${this.#expression(e.base)}(${this.#arguments(values)})`;
  }

  /** A value that is known to be a number, or is made one as Lua does. */
  #number(e) {
    const text = this.#expression(e);
    return isNumber(e) ? text : `L.number(${text})`;
  }

  #text(e) {
    const text = this.#expression(e);
    const isText = e.type === "StringLiteral" || (e.type === "BinaryExpression" && e.operator === "..");
    return isText ? text : `L.text(${text})`;
  }

  /** A condition: nil and false are false, all else is true. */
  #test(e) {
    if (e.type === "LogicalExpression")
      return `(${this.#test(e.left)} ${e.operator === "and" ? "&&" : "||"} ${this.#test(e.right)})`;
    if (e.type === "UnaryExpression" && e.operator === "not") return `!${this.#test(e.argument)}`;
    return isBoolean(e) ? this.#expression(e) : `L.isTrue(${this.#expression(e)})`;
  }

  #expression(e) {
    switch (e.type) {
      case "NumericLiteral":
        return String(e.value);
      case "StringLiteral":
        return JSON.stringify(e.value);
      case "BooleanLiteral":
        return String(e.value);
      case "NilLiteral":
        return "undefined";
      case "Identifier":
        return this.#identifier(e.name);
      case "MemberExpression":
        return e.base.name in LIBRARIES && !this.#lookup(e.base.name)
          ? this.#offered(e.base.name, e.identifier.name)
          : `${this.#indexed(e.base)}.get(${this.#key(e)})`;
      case "IndexExpression":
        return `${this.#indexed(e.base)}.get(${this.#key(e)})`;
      case "CallExpression":
      case "StringCallExpression":
        return this.#isSeveral(e) ? `${this.#call(e)}[0]` : this.#call(e);
      case "LogicalExpression":
        return this.#logical(e);
      case "UnaryExpression":
        if (e.operator === "not") return `!${this.#test(e.argument)}`;
        if (e.operator === "#") return `L.size(${this.#expression(e.argument)})`;
        return e.operator === "-" ? `(-${this.#number(e.argument)})` : this.#fail(e.operator);
      case "BinaryExpression":
        return this.#binary(e);
      case "TableConstructorExpression":
        return this.#table(e);
      case "FunctionDeclaration":
        return this.#fail("function without a name");
      default:
        return this.#fail(e);
    }
  }

  /** A member of a library. `string.gmatch` is for loops only. */
  #offered(library, name) {
    if (!LIBRARIES[library].includes(name)) this.#fail(`${library}.${name}`);
    return `${library === "redis" ? "" : "L."}${library}.${name}`;
  }

  #identifier(name) {
    const known = this.#lookup(name);
    if (known) return known;
    if (INPUTS.includes(name)) return name;
    return GLOBALS.includes(name) ? `L.${name}` : this.#fail(`global ${name}`);
  }

  /** `_` is read as soon as it is set. */
  #logical({ operator, left, right }) {
    const other = this.#expression(right);
    if (isBoolean(left))
      return operator === "and" ? `(${this.#test(left)} && ${other})` : `(${this.#test(left)} || ${other})`;
    const test = `L.isTrue(_ = ${this.#expression(left)})`;
    return operator === "and" ? `(${test} ? ${other} : _)` : `(${test} ? _ : ${other})`;
  }

  #binary(e) {
    const { operator, left, right } = e;
    if (operator === "..") return `(${this.#text(left)} + ${this.#text(right)})`;
    const comparison = COMPARISONS[operator];
    if (comparison === undefined) {
      if (operator === "%") return `L.modulo(${this.#number(left)}, ${this.#number(right)})`;
      if (!["+", "-", "*", "/"].includes(operator)) this.#fail(operator);
      return `(${this.#number(left)} ${operator} ${this.#number(right)})`;
    }
    const [a, b] = [this.#expression(left), this.#expression(right)];
    if (comparison.endsWith("=")) return `(${a} ${comparison} ${b})`;
    if (isNumber(left) && isNumber(right)) return `(${a} ${operator} ${b})`;
    // Operands keep their order: the left one is computed first.
    return operator.startsWith(">") ? `L.g${comparison.slice(1)}(${a}, ${b})` : `L.${comparison}(${a}, ${b})`;
  }

  #table({ fields }) {
    if (fields.every(({ type }) => type === "TableValue"))
      return `L.LuaTable.of(${this.#list(fields.map(({ value }) => value))})`;
    const pairs = fields.map((field) => {
      if (field.type === "TableValue") this.#fail("table with both keys and values");
      const key =
        field.type === "TableKeyString" ? JSON.stringify(field.key.name) : this.#expression(field.key);
      return `[${key}, ${this.#expression(field.value)}]`;
    });
    return `L.LuaTable.with([${pairs.join(", ")}])`;
  }
}

const NUMBERS = ["+", "-", "*", "/", "%"];
const isNumber = (e) =>
  e.type === "NumericLiteral" ||
  (e.type === "UnaryExpression" && (e.operator === "#" || e.operator === "-")) ||
  (e.type === "BinaryExpression" && NUMBERS.includes(e.operator)) ||
  (isCall(e) && e.base.type === "MemberExpression" && e.base.base.name === "math");
const isBoolean = (e) =>
  (e.type === "BinaryExpression" && e.operator in COMPARISONS) ||
  (e.type === "UnaryExpression" && e.operator === "not") ||
  e.type === "BooleanLiteral" ||
  (e.type === "LogicalExpression" && isBoolean(e.left) && isBoolean(e.right));

/** Does this text end the script that includes it? */
function canReturn(node, trees) {
  return childrenOf(node).some((child) => {
    if (child.type === "FunctionDeclaration") return false;
    const path = included(child);
    if (path !== null) return canReturn(trees.get(path), trees);
    return child.type === "ReturnStatement" || canReturn(child, trees);
  });
}
