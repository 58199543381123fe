import type { DeadlockLink } from "../../api/errors.ts";
import type { Inspected } from "../../api/lock.ts";
import type { Party } from "../../api/party.ts";
import type { CountedInspection } from "../../redis/counted-replies.ts";
import { clientOf } from "../../redis/party.ts";
import { lockOf, type Note, type NotedHold, type NotedProtocol } from "./note.ts";

/** What an inspection shows of a lock. */
interface Seen {
  readonly holders: readonly Party[];
  readonly waiters: readonly Party[];
}

/** Inspects a lock, by one command. */
export type Look = (protocol: NotedProtocol, name: string) => Promise<Seen>;

/** How one lock of each kind is inspected. */
export interface Inspections {
  readonly lock: (name: string) => Promise<Inspected>;
  readonly remember: (name: string) => Promise<Inspected>;
  readonly readWrite: (name: string) => Promise<CountedInspection>;
  readonly semaphore: (name: string) => Promise<CountedInspection>;
}

export const seeing =
  (inspections: () => Inspections): Look =>
  async (protocol, name) => {
    if (protocol === "handoff" || protocol === "remember") {
      const { holder, waiters } = await inspections()[KINDS[protocol]](name);
      return { holders: holder ? [holder] : [], waiters: waiters ?? [] };
    }
    const { holders, waiters } = await inspections()[KINDS[protocol]](name);
    return { holders: holders.map(({ party }) => party), waiters };
  };

/** A caller, the lock that it waits for, and the hold of the next caller that is in its way. */
interface Step {
  readonly waiter: Note;
  readonly ref: string;
  readonly hold: NotedHold;
  readonly holder: Note;
}

/** Callers, each of which waits for the next one, and the last for the first: a deadlock. */
export class Circle {
  readonly #steps: readonly Step[];
  /** Circles with the same key are the same: the same waits, for the same turns. */
  readonly key: string;

  constructor(steps: readonly Step[]) {
    this.#steps = steps;
    this.key = steps.map(({ waiter, ref, hold }) => `${waiter.id} ${ref} ${hold.id} ${hold.turn}`).join(", ");
  }

  /** The lock that the first caller waits for. */
  get name(): string {
    const [first] = this.#steps;
    return (first && lockOf(first.ref)?.name) ?? "";
  }

  /** The first caller's hold that the last one waits for. */
  get ownHold(): NotedHold | undefined {
    return this.#steps.at(-1)?.hold;
  }

  /**
   * Its callers: for each, the hold that the previous caller waits for, and the lock that it waits
   * for itself.
   */
  get callers(): { readonly note: Note; readonly hold: NotedHold; readonly waitsFor: string }[] {
    return this.#steps.map(({ waiter, ref }, i) => {
      const { hold } = this.#steps.at(i - 1) as Step;
      return { note: waiter, hold, waitsFor: ref };
    });
  }

  /** Were the notes of all other callers true later than this moment, by their own clients? */
  isLaterThan(moment: number): boolean {
    return this.#steps.slice(1).every(({ waiter }) => waiter.after >= moment);
  }

  /** Can no caller outside of it break it? */
  get isSure(): boolean {
    return this.#steps.every(
      ({ waiter, ref, hold }) => lockOf(ref)?.protocol !== "semaphore" && !(waiter.isRead && hold.isRead),
    );
  }

  /**
   * Of the callers that may be rejected, the one that began to wait last: every caller's client
   * finds the same one. Null: none may, or the deadlock is only a possible one: other callers can
   * give back permits of a semaphore, or the writer between two readers can leave.
   */
  get rejected(): string | null {
    const all = this.#steps.map(({ waiter }) => waiter).filter(({ rejects }) => this.isSure && rejects);
    all.sort((one, other) => other.since - one.since || (other.id < one.id ? -1 : 1));
    return all[0]?.id ?? null;
  }

  /** What Redis says about it now. Null: one of its holds has ended, or a waiter has left. */
  async confirm(look: Look): Promise<DeadlockLink[] | null> {
    const links = await Promise.all(this.#steps.map((step, i) => linkOf(step, i === 0, look)));
    const found = links.filter((link) => link !== null);
    return found.length === links.length ? found : null;
  }
}

export const KINDS = {
  handoff: "lock",
  rw: "readWrite",
  semaphore: "semaphore",
  remember: "remember",
} as const;

/** `isOwn`: the caller belongs to this client, which knows whether it waits. */
async function linkOf({ waiter, ref, hold }: Step, isOwn: boolean, look: Look): Promise<DeadlockLink | null> {
  const lock = lockOf(ref);
  if (!lock) return null;
  const { holders, waiters } = await look(lock.protocol, lock.name);
  const holder = holders.find(({ id }) => id === hold.id);
  const client = waiter.id.slice(0, waiter.id.lastIndexOf("/"));
  // A caller that waits for its own process waits there, and not in Redis.
  const waits = isOwn || [...waiters, ...holders].some((one) => clientOf(one) === client);
  return holder && waits ? { name: lock.name, kind: KINDS[lock.protocol], holder } : null;
}

/** For each lock the callers that hold it, in their order. */
export type Holders = ReadonlyMap<string, readonly { readonly holder: Note; readonly hold: NotedHold }[]>;

export function holdersOf(notes: readonly Note[]): Holders {
  const holders = new Map<string, { holder: Note; hold: NotedHold }[]>();
  for (const holder of notes)
    for (const hold of holder.holds) {
      const known = holders.get(hold.ref);
      if (known) known.push({ holder, hold });
      else holders.set(hold.ref, [{ holder, hold }]);
    }
  return holders;
}

/**
 * The shortest circle through this caller. Null: there is none. Any client may write notes, so each
 * lock is followed only once.
 */
export function circleOf(own: Note, holders: Holders): Circle | null {
  let ways: (readonly Step[])[] = [[]];
  const backs = new Map<string, NotedHold>();
  for (const hold of own.holds) if (!backs.has(hold.ref)) backs.set(hold.ref, hold);
  const seen = new Set<Note>();
  const asked = new Set<string>();
  while (ways.length > 0) {
    const longer: (readonly Step[])[] = [];
    for (const way of ways) {
      const waiter = way.at(-1)?.holder ?? own;
      for (const ref of waiter.waits) {
        const back = way.length > 0 && backs.get(ref);
        if (back) return new Circle([...way, { waiter, ref, hold: back, holder: own }]);
        if (asked.has(ref)) continue;
        asked.add(ref);
        for (const { holder, hold } of holders.get(ref) ?? []) {
          if (seen.has(holder) || holder.id === own.id) continue;
          seen.add(holder);
          longer.push([...way, { waiter, ref, hold, holder }]);
        }
      }
    }
    ways = longer;
  }
  return null;
}
