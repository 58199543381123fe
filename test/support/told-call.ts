import type { ToldCall } from "../../src/tools/ui/observed.ts";

let calls = 0;

/** What an observed process may report of a call. */
export const toldCall = (name: string, how: ToldCall["how"], changes: Partial<ToldCall> = {}): ToldCall => ({
  name,
  kind: "lock",
  how,
  call: ++calls,
  ago: 700,
  waitedFor: 30,
  heldFor: how === "giveup" ? null : 4_000,
  why: how === "lost" ? "expired" : how === "giveup" ? "timeout" : null,
  token: null,
  lease: null,
  site: null,
  ...changes,
});
