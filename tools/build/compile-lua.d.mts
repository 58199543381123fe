/** See compile-lua.mjs. */
export function includeMark(path: string): string;
export function compileScripts(
  scripts: readonly { readonly name: string; readonly sha: string; readonly text: string }[],
  parts: ReadonlyMap<string, string>,
): string;
