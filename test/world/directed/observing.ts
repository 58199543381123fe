import type { Leader, Term } from "../../../src/index.ts";
import type { SceneProcess } from "./scene-process.ts";

// The election "e", and what an observer of it is shown.

export const election = (one: SceneProcess) => one.client.election("e");

export const campaign = (one: SceneProcess, value: string): Promise<Term> =>
  one.does(() => election(one).campaign({ value }));

/** What an observer in this process is shown, the newest last. */
export function observe(one: SceneProcess) {
  const seen: (string | null)[] = [];
  const stop = new AbortController();
  const ended = (async () => {
    for await (const leader of election(one).observe({ signal: stop.signal }))
      seen.push((leader as Leader | null)?.value ?? null);
  })();
  return {
    seen,
    async end() {
      stop.abort();
      await ended;
    },
  };
}
