import { micros } from "../history/events.ts";
import type { Field } from "./fault.ts";

/**
 * Notes the moments between which the servers may have forgotten what they had promised. Tokens are the server's µs.
 *
 * @returns call it when no server is left that remembers what the others do not
 */
export function forgetting(
  field: Pick<Field, "tell">,
  what: string,
  now: () => number = Date.now,
): () => void {
  const since = micros();
  const from = (now() - 1) * 1_000;
  return () => field.tell({ is: "forgot", since, from, to: (now() + 1) * 1_000, what });
}
