import { micros } from "../history/events.ts";
import type { Field } from "./fault.ts";

/**
 * Notes the moments between which the servers may have forgotten what they had promised. Tokens are
 * the server's µs.
 *
 * @param unsure how many ms `now` may be wrong by
 * @returns call it when no server is left that remembers what the others do not
 */
export function forgetting(
  field: Pick<Field, "tell">,
  what: string,
  now: () => number = Date.now,
  unsure = 1,
): () => void {
  const since = micros();
  const from = (now() - unsure) * 1_000;
  return () => field.tell({ is: "forgot", since, from, to: (now() + unsure) * 1_000, what });
}
