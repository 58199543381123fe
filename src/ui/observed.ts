// What observed processes write, and the page reads: one stream, in which each process has an entry for some seconds.

/** The stream. It is none of a lock's keys, and no lock needs it. */
export const STREAM = "holdfast:observed";
/** ms that it lives after the last entry, and how many entries it has, more or less. */
export const KEPT = 3_600_000;
export const ENTRIES = 20_000;

/** What one process has to tell of some seconds. */
export interface Told {
  /** The `id` of its client. */
  readonly client: string;
  /** By name: how many calls had waited for how long, as `stepOf` has it, when they got the lock or gave up. */
  readonly waits: Readonly<Record<string, Readonly<Record<string, number>>>>;
  /** Single calls: what, the lock's name, how many ms ago, after how many ms, why. The latest ones, if there were many. */
  readonly events: readonly (readonly [
    "acquire" | "giveup" | "lost",
    string,
    number,
    number,
    string | null,
  ])[];
}

/** Waits are counted in steps, four for each doubling of the time. */
export const stepOf = (ms: number): number => Math.ceil(4 * Math.log2(ms + 1));
/** The longest wait of a step, in ms. */
export const longestOf = (step: number): number => Math.round(2 ** (step / 4) - 1);

export function decodeTold(text: string): Told | null {
  try {
    const { client, waits, events } = JSON.parse(text) as Partial<Told>;
    const isTold =
      typeof client === "string" && typeof waits === "object" && waits !== null && Array.isArray(events);
    return isTold ? { client, waits, events } : null;
  } catch {
    // Something else has written there.
    return null;
  }
}
