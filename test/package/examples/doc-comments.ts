import { readFileSync } from "node:fs";
import { join } from "node:path";
import ts from "typescript";

/** A name that users can reach from an entry point: an export, or a member of one. */
export interface Documented {
  /** Such as `Lock.withLock`. */
  readonly name: string;
  /** From where it is imported: "holdfast/quorum". */
  readonly entry: string;
  readonly isFunction: boolean;
  /** The code of its `@example`s. */
  readonly examples: readonly string[];
}

/** The declaration files of a package, by what users import. */
export function entryPoints(folder: string): ReadonlyMap<string, string> {
  const { name, exports } = JSON.parse(readFileSync(join(folder, "package.json"), "utf8"));
  const found = Object.entries<{ types?: string }>(exports);
  return new Map(
    found.flatMap(([path, { types }]) => (types ? [[join(name, path), join(folder, types)] as const] : [])),
  );
}

/**
 * What the entry points of a package export, and the members of that, with their examples as an
 * editor shows them.
 */
export function documented(folder: string): Documented[] {
  const entries = entryPoints(folder);
  // Nothing but the package itself is read: names need no types of others.
  const program = ts.createProgram([...entries.values()], { noResolve: false, noLib: true, types: [] });
  const checker = program.getTypeChecker();
  const seen = new Set<ts.Node>();
  const found: Documented[] = [];

  const add = (name: string, entry: string, symbol: ts.Symbol): void => {
    const [node] = symbol.declarations ?? [];
    if (!node || seen.has(node) || !node.getSourceFile().fileName.startsWith(folder)) return;
    seen.add(node);
    const tags = symbol.getJsDocTags(checker).filter((tag) => tag.name === "example");
    const isFunction = checker.getTypeOfSymbolAtLocation(symbol, node).getCallSignatures().length > 0;
    found.push({ name, entry, isFunction, examples: tags.map(({ text }) => ts.displayPartsToString(text)) });
  };

  for (const [entry, path] of entries) {
    const file = program.getSourceFile(path);
    const module = file && checker.getSymbolAtLocation(file);
    if (!module) throw new Error(`${path} exports nothing`);
    for (const exported of checker.getExportsOfModule(module)) {
      const isAlias = (exported.flags & ts.SymbolFlags.Alias) !== 0;
      const symbol = isAlias ? checker.getAliasedSymbol(exported) : exported;
      add(symbol.name, entry, symbol);
      if ((symbol.flags & (ts.SymbolFlags.Interface | ts.SymbolFlags.Class)) === 0) continue;
      const members = checker.getPropertiesOfType(checker.getDeclaredTypeOfSymbol(symbol));
      for (const member of members)
        if (!member.name.startsWith("__@")) add(`${symbol.name}.${member.name}`, entry, member);
    }
  }
  return found;
}

/** The names that a piece of code uses, and does not declare. */
export function freeNames(code: string): Set<string> {
  const used = new Set<string>();
  const own = new Set<string>();
  const visit = (node: ts.Node): void => {
    if (ts.isIdentifier(node) && !isOfMember(node)) (isDeclared(node) ? own : used).add(node.text);
    ts.forEachChild(node, visit);
  };
  visit(parse(code));
  return new Set([...used].filter((name) => !own.has(name)));
}

/** The names that a piece of code declares for what comes after it. */
export function declaredNames(code: string): string[] {
  return parse(code)
    .statements.filter(ts.isVariableStatement)
    .flatMap(({ declarationList }) => declarationList.declarations.map(({ name }) => name.getText()));
}

/** A piece of code without its imports, and those. */
export function splitImports(code: string): { imports: string; rest: string } {
  const found = parse(code).statements.filter(ts.isImportDeclaration);
  const end = found.at(-1)?.end ?? 0;
  return { imports: code.slice(0, end), rest: code.slice(end) };
}

const parse = (code: string): ts.SourceFile =>
  ts.createSourceFile("code.ts", code, ts.ScriptTarget.Latest, true);

function isDeclared(node: ts.Identifier): boolean {
  const { parent } = node;
  const declares =
    ts.isVariableDeclaration(parent) ||
    ts.isParameter(parent) ||
    ts.isBindingElement(parent) ||
    ts.isFunctionDeclaration(parent) ||
    ts.isClassDeclaration(parent) ||
    ts.isImportSpecifier(parent);
  return declares && parent.name === node;
}

function isOfMember(node: ts.Identifier): boolean {
  const { parent } = node;
  if (ts.isBindingElement(parent) || ts.isImportSpecifier(parent)) return parent.propertyName === node;
  const names =
    ts.isPropertyAccessExpression(parent) ||
    ts.isPropertyAssignment(parent) ||
    ts.isPropertySignature(parent);
  return names && parent.name === node;
}
