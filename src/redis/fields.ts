import { micros } from "./statement.ts";
/** A reply that no script of this package sends. */
export const unexpected = (answer: unknown): TypeError =>
  new TypeError(`Redis gave an unexpected answer, ${JSON.stringify(shown(answer))}`);

const shown = (answer: unknown): unknown =>
  Buffer.isBuffer(answer) ? answer.toString() : Array.isArray(answer) ? answer.map(shown) : answer;

/**
 * The least number of 16 digits. Scripts whose tokens are made of the server's time begin there, on
 * a server whose clock is in 1970 too. It tells the short answer of an acquire, which is the time
 * alone, from other numbers.
 */
export const FIRST_TOKEN = 1e15;

/**
 * A reply that is a text of 16 digits: the server's time in µs, which is a token, too.
 *
 * @throws TypeError for every other reply
 */
export function tokenTime(reply: unknown): number {
  // A wrapped connection may read texts.
  const text = Buffer.isBuffer(reply) ? reply.toString("latin1") : reply;
  const time = Number(text);
  // In digits: not "1.79590012345e15".
  if (time >= FIRST_TOKEN && time <= Number.MAX_SAFE_INTEGER && micros(time) === text) return time;
  throw unexpected(reply);
}

/** The items of a reply that is a list. */
export function listOf(reply: unknown): unknown[] {
  if (Array.isArray(reply)) return reply;
  throw unexpected(reply);
}

/** A field of INFO's text; null: the text has none of that name. */
export const infoField = (info: string, name: string): string | null =>
  new RegExp(`^${name}:(.*?)\\r?$`, "m").exec(info)?.[1] ?? null;

/**
 * The share of `maxmemory` in use, by INFO's text, as Redis compares them: without the buffers of
 * replicas and of the append-only file. Null: there is no limit, or the text does not say.
 */
export function memoryUse(info: string): number | null {
  const limit = Number(infoField(info, "maxmemory"));
  const used = infoField(info, "used_memory");
  if (used === null || !(limit > 0)) return null;
  return (Number(used) - Number(infoField(info, "mem_not_counted_for_evict"))) / limit;
}
