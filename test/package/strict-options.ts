import { join } from "node:path";
import ts from "typescript";

/** How a strict program in a folder is compiled; `root`: where its @types are. */
export const strictOptions = (root: string): ts.CompilerOptions => ({
  target: ts.ScriptTarget.ES2023,
  lib: ["lib.es2023.d.ts", "lib.esnext.disposable.d.ts"],
  module: ts.ModuleKind.NodeNext,
  types: ["node"],
  typeRoots: [join(root, "node_modules/@types")],
  strict: true,
});
