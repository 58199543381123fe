// The note in Redis of a caller that waits while its scope has a hold: one line of words. Other
// programs may write such lines too; an unreadable one is ignored.

import type { SharedLease } from "../../core/lease/shared-lease.ts";
import { withoutBits } from "../../redis/hold-ids.ts";

const PROTOCOLS = ["handoff", "rw", "semaphore", "remember"] as const;

/** Protocols with a queue in Redis, which can be inspected there. */
export type NotedProtocol = (typeof PROTOCOLS)[number];

/** One lock that a scope holds. */
export interface NotedHold {
  /** Which lock: its protocol and its name. */
  readonly ref: string;
  /** As inspections show it. */
  readonly id: string;
  /**
   * RACE: several callers of one process use one hold in turn, so a hold alone does not identify
   * its caller. The token of the turn does, and is never used again.
   */
  readonly turn: number;
  readonly isRead: boolean;
}

/** A caller that waits for all of `waits`, in a scope that has all of `holds`. */
export interface Note {
  /** The wait's id: its client's id, and a number after the last `/`. */
  readonly id: string;
  readonly waits: readonly string[];
  readonly isRead: boolean;
  /** When the wait began, in µs by the server's clock; 0: unknown so far. */
  readonly since: number;
  /**
   * All of this was true later than this moment, in µs by the server's clock; 0: unknown so far.
   */
  readonly after: number;
  /** May this caller be rejected? */
  readonly rejects: boolean;
  readonly holds: readonly NotedHold[];
}

export const isNoted = (protocol: string): protocol is NotedProtocol =>
  PROTOCOLS.some((one) => one === protocol);

/** Contains no space, comma or `=`. */
export const refOf = (protocol: NotedProtocol, name: string): string =>
  `${protocol}:${encodeURIComponent(name)}`;

/** Null: it names no lock. */
export function lockOf(ref: string): { readonly protocol: NotedProtocol; readonly name: string } | null {
  const [protocol = "", name = ""] = ref.split(":");
  return isNoted(protocol) ? { protocol, name: decodeURIComponent(name) } : null;
}

export const holdOf = (protocol: NotedProtocol, { name, hold, token, owner }: SharedLease): NotedHold => ({
  ref: refOf(protocol, name),
  id: withoutBits(hold.id),
  turn: token,
  isRead: owner.kind.mode === "read",
});

/** The text after the id. */
export function encodeNote({ waits, isRead, since, after, rejects, holds }: Note): string {
  const held = holds.map(
    ({ ref, id, turn, isRead }) => `${ref}=${encodeURIComponent(id)}=${turn}=${digit(isRead)}`,
  );
  return [waits.join(","), digit(isRead), since, after, digit(rejects), held.join(",")].join(" ");
}

/** Clients write less: a note with more waits or holds would only cost its readers. */
const MOST = 64;

/** Null: it cannot be read. */
export function decodeNote(line: string): Note | null {
  const [id = "", waited = "", isRead, since, after, rejects, held = ""] = line.split(" ", 7);
  try {
    const [waits, texts] = [waited.split(",", MOST + 1), held.split(",", MOST + 1)];
    if (waits.length > MOST || texts.length > MOST) return null;
    const holds = texts.map((one): NotedHold => {
      const [ref = "", id = "", turn, isRead] = one.split("=");
      return { ref, id: decodeURIComponent(id), turn: Number(turn), isRead: isRead === "1" };
    });
    const note: Note = {
      id,
      waits,
      isRead: isRead === "1",
      since: Number(since),
      after: Number(after),
      rejects: rejects === "1",
      holds,
    };
    const isSound = [...note.waits, ...holds.map(({ ref }) => ref)].every((ref) => lockOf(ref) !== null);
    return isSound && Number.isFinite(note.since) && Number.isFinite(note.after) ? note : null;
  } catch {
    return null;
  }
}

const digit = (is: boolean): 0 | 1 => (is ? 1 : 0);
