// The declarations that users can reach from those of the entry points. The compiler writes all
// declarations, including 25 KiB of classes and helpers that no user can name.
import { readFileSync } from "node:fs";
import { dirname, join } from "node:path";
import ts from "typescript";

/**
 * The texts of the declaration files that these need, reduced to the needed declarations, by path.
 */
export function reachable(entries) {
  const files = new Map();
  const queue = [];
  const open = (path) => {
    if (!files.has(path)) files.set(path, new Declarations(path));
    return files.get(path);
  };
  const need = (path, name) => {
    if (open(path).need(name)) queue.push([path, name]);
  };
  for (const entry of entries) for (const name of open(entry).names()) need(entry, name);
  for (const [path, name] of queue)
    for (const { from, name: wanted } of files.get(path).neededBy(name)) need(from, wanted);
  return new Map([...files].map(([path, file]) => [path, file.text()]));
}

/** What a name refers to: a declaration of this file, or an import or export from another one. */
class Declarations {
  #path;
  #source;
  /** The statements that declare a name; several for overloads. */
  #own = new Map();
  /** Local names that come from other files, and the names there. */
  #others = new Map();
  #needed = new Set();

  constructor(path) {
    this.#path = path;
    this.#source = ts.createSourceFile(path, readFileSync(path, "utf8"), ts.ScriptTarget.Latest, true);
    for (const statement of this.#source.statements) this.#read(statement);
  }

  names() {
    return [...this.#own.keys(), ...this.#others.keys()];
  }

  /** False if that is already known, or if the name is not from this file. */
  need(name) {
    if (this.#needed.has(name) || !(this.#own.has(name) || this.#others.has(name))) return false;
    this.#needed.add(name);
    return true;
  }

  /** The names that the declaration of a name mentions, with the files that have them. */
  neededBy(name) {
    const other = this.#others.get(name);
    if (other) return [other];
    const found = [];
    const visit = (node) => {
      if (ts.isIdentifier(node)) found.push({ from: this.#path, name: node.text });
      ts.forEachChild(node, visit);
    };
    for (const statement of this.#own.get(name)) visit(statement);
    return found;
  }

  text() {
    const kept = this.#source.statements.flatMap((statement) => {
      const elements = elementsOf(statement);
      if (!elements) return isOf(statement, this.#needed) ? [statement.getFullText().trim()] : [];
      const wanted = elements.filter((element) => this.#needed.has(element.name.text));
      if (wanted.length === 0)
        return statement.moduleSpecifier?.text.startsWith(".") ? [] : [statement.getText()];
      const word = ts.isImportDeclaration(statement) ? "import" : "export";
      const type = (statement.importClause?.isTypeOnly ?? statement.isTypeOnly) ? "type " : "";
      const names = wanted.map((element) => element.getText()).join(", ");
      return [`${word} ${type}{ ${names} } from ${statement.moduleSpecifier.getText()};`];
    });
    return `${kept.join("\n")}\n`;
  }

  #read(statement) {
    const specifier = statement.moduleSpecifier?.text;
    if (specifier?.startsWith(".")) {
      const from = join(dirname(this.#path), specifier.replace(/\.[jt]s$/, ".d.ts"));
      for (const element of elementsOf(statement) ?? [])
        this.#others.set(element.name.text, { from, name: (element.propertyName ?? element.name).text });
    } else
      for (const name of namesOf(statement)) this.#own.set(name, [...(this.#own.get(name) ?? []), statement]);
  }
}

/** The names in the braces of an import or export from another file; undefined for every other statement. */
function elementsOf(statement) {
  if (ts.isImportDeclaration(statement)) return statement.importClause?.namedBindings?.elements;
  if (ts.isExportDeclaration(statement) && statement.moduleSpecifier) return statement.exportClause?.elements;
  return undefined;
}

function namesOf(statement) {
  if (ts.isVariableStatement(statement))
    return statement.declarationList.declarations.map(({ name }) => name.getText());
  return statement.name ? [statement.name.text] : [];
}

const isOf = (statement, names) => namesOf(statement).some((name) => names.has(name));
