import { codes } from "../redis/lua.generated.ts";
import type { Kept, Memory, Reply, Run } from "./memory.ts";

// What stands under the keys of locks in memory, and what all kinds do with it.

const { GONE, RENEWED, TAKEN } = codes;

/** A lock that is held. `hold`: with its label behind a space, as commands name it. `since`: the token of the first hold of an unbroken chain of hand-overs. */
export interface Held extends Kept {
  readonly hold: string;
  readonly token: number;
  readonly since: number;
  told: number;
}

/** Those that wait, in order, with what each is granted: see lua/handoff/start.lua and lua/counted/start.lua. */
export interface Queue extends Kept {
  readonly entries: string[];
  /** Since when each waits: a time in µs. */
  readonly tickets: Map<string, number>;
}

/** A hold without its label, as messages name it. */
export const idOf = (hold: string): string => hold.split(" ", 1)[0] ?? "";

/** Where the client of a hold is told of grants. */
export const channelOf = (hold: string): string => idOf(hold).slice(0, -22);

/** Takes an entry out of a queue, or the first one. */
export function take(memory: Memory, queue: string, entry?: string): string | undefined {
  const entries = memory.get<Queue>(queue)?.entries ?? [];
  const at = entry === undefined ? 0 : entries.indexOf(entry);
  const [taken] = at < 0 ? [] : entries.splice(at, 1);
  memory.get<Queue>(queue)?.tickets.delete(taken ?? "");
  if (entries.length === 0) memory.drop(queue);
  return taken;
}

/** Its place. An entry that stands there already stays where it is. */
export function enqueue(memory: Memory, queue: string, entry: string): number {
  const none = { entries: [] as string[], tickets: new Map<string, number>() };
  const kept =
    memory.get<Queue>(queue) ?? memory.keep<Omit<Queue, "until">>(queue, Number.POSITIVE_INFINITY, none);
  if (!kept.entries.includes(entry)) {
    kept.entries.push(entry);
    kept.tickets.set(entry, memory.now);
  }
  return kept.entries.indexOf(entry);
}

export const waiting = (memory: Memory, queue: string): readonly string[] =>
  memory.get<Queue>(queue)?.entries ?? [];

/** The server's time when an entry was made. */
export const ticketOf = (memory: Memory, queue: string, entry: string): number =>
  memory.get<Queue>(queue)?.tickets.get(entry) ?? memory.now;

/** Of a renewal: what became of a hold, and the ms that are left. */
export function renewal(
  memory: Memory,
  held: (Kept & { readonly hold: string }) | undefined,
  argv: readonly unknown[],
): Reply[] {
  const [hold, ttl] = argv;
  return held?.hold === hold ? [RENEWED, memory.raise(held as Kept, Number(ttl))] : [held ? TAKEN : GONE, 0];
}

/** The same of several, of which each has a key and two arguments. */
export const renewals =
  (memory: Memory): Run =>
  (keys, argv) =>
    keys.flatMap((key, i) => renewal(memory, memory.get<Held>(key), argv.slice(2 * i)));
