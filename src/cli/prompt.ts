import { createInterface } from "node:readline/promises";

/** What a person types. Null: nobody can be asked, because stdin is no terminal. The question goes to stderr. */
export async function prompt(question: string): Promise<string | null> {
  if (!process.stdin.isTTY) return null;
  const lines = createInterface({ input: process.stdin, output: process.stderr });
  const gone = new AbortController();
  lines.once("close", () => gone.abort());
  try {
    return await lines.question(question, { signal: gone.signal });
  } catch {
    return ""; // Ctrl-C, Ctrl-D
  } finally {
    lines.close();
  }
}
