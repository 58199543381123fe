import { join as joinPosix } from "node:path/posix";
import ts from "typescript";
import { memoized, readImports } from "./imports.ts";

/** A class of a module, exported or not. */
export interface DeclaredClass {
  /** Relative to the root. */
  readonly file: string;
  readonly name: string;
  readonly isAbstract: boolean;
  /** The class that it extends; null: none, or one of another folder or package. */
  readonly base: DeclaredClass | null;
}

/**
 * The classes of the modules below a folder.
 *
 * @throws Error if a class extends one that its module neither declares nor imports from the module
 * that declares it
 */
export function readClasses(root: string, folder: string): readonly DeclaredClass[] {
  const files = [...readImports(root, folder).keys()];
  const modules = new Map(files.map((file) => [file, readModule(root, file)]));
  const found = new Map<ts.ClassLikeDeclaration, DeclaredClass>();

  const baseOf = (file: string, module: Module, node: ts.ClassLikeDeclaration): DeclaredClass | null => {
    const clause = node.heritageClauses?.find(({ token }) => token === ts.SyntaxKind.ExtendsKeyword);
    const base = clause?.types[0]?.expression;
    if (!base || !ts.isIdentifier(base)) return null;
    const own = module.classes.find(({ name }) => name?.text === base.text);
    if (own) return describe(file, module, own);
    const { from = "", name = "" } = module.imports.get(base.text) ?? {};
    const other = modules.get(from);
    if (!other) return null;
    const imported = other.classes.find((one) => one.name?.text === name);
    if (!imported) throw new Error(`${file} extends ${name}, which ${from} does not declare`);
    return describe(from, other, imported);
  };
  const describe = (file: string, module: Module, node: ts.ClassLikeDeclaration): DeclaredClass => {
    const known = found.get(node);
    if (known) return known;
    const isAbstract = node.modifiers?.some(({ kind }) => kind === ts.SyntaxKind.AbstractKeyword) ?? false;
    const name = node.name?.text ?? "(a class without a name)";
    const described = { file, name, isAbstract, base: baseOf(file, module, node) };
    found.set(node, described);
    return described;
  };
  return [...modules].flatMap(([file, module]) => module.classes.map((node) => describe(file, module, node)));
}

/** How many classes of the folder are above this one. */
export function depthOf({ base }: DeclaredClass): number {
  return base === null ? 0 : 1 + depthOf(base);
}

interface Module {
  readonly classes: readonly ts.ClassLikeDeclaration[];
  /** By the local name: the module that it comes from, and its name there. */
  readonly imports: ReadonlyMap<string, { readonly from: string; readonly name: string }>;
}

const readModule = memoized((file, text): Module => {
  if (!/\bclass\b/.test(text)) return { classes: [], imports: new Map() };
  const source = ts.createSourceFile(file, text, ts.ScriptTarget.Latest);
  const classes: ts.ClassLikeDeclaration[] = [];
  const imports = new Map<string, { from: string; name: string }>();
  const visit = (node: ts.Node): void => {
    if (ts.isClassLike(node)) classes.push(node);
    if (ts.isImportDeclaration(node) && ts.isStringLiteral(node.moduleSpecifier)) {
      const from = joinPosix(file, "..", node.moduleSpecifier.text);
      const bindings = node.importClause?.namedBindings;
      if (bindings && ts.isNamedImports(bindings))
        for (const { name, propertyName = name } of bindings.elements)
          imports.set(name.text, { from, name: propertyName.text });
    }
    ts.forEachChild(node, visit);
  };
  visit(source);
  return { classes, imports };
});
