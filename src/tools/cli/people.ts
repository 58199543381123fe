import { userInfo } from "node:os";
import { createInterface } from "node:readline/promises";
import { hostName } from "../../util/host.ts";

/** The caller of this program, as the label of a force-release. */
export function operator(): string {
  return cutLabel(`${userName()}@${hostName()}`);
}

/** A container's user may have a number only, and a runtime may refuse even that. */
function userName(): string {
  for (const name of [() => userInfo().username, () => `uid${process.getuid?.()}`]) {
    try {
      return name();
    } catch {
      // The next one.
    }
  }
  return "unknown";
}

/** A label has at most 64 bytes. */
export function cutLabel(text: string): string {
  let label = text;
  while (Buffer.byteLength(label) > 64) label = label.replace(/.$/su, "");
  return label || "command";
}

/**
 * What a person types. Null: no one can answer, because stdin is no terminal. The question goes to
 * stderr.
 */
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
