import pTimeout from "p-timeout";
import type { Listed } from "../../index.ts";
import {
  type Circle,
  circleOf,
  clientOf,
  decodeNote,
  holdersOf,
  listOf,
  lockOfNote,
  NOTED_KINDS,
  type Note,
} from "../../inside.ts";
import { uiLua as lua } from "./lua.generated.ts";
import type { LockUIOptions } from "./options.ts";
import type { ShownCircle } from "./shown.ts";
import { shownHolder } from "./views.ts";

const KEY = "holdfast:waits";
/** Members that are read: a caller has one for each lock that its scope holds. */
const MEMBERS = 1_000;
/** So many are looked for, and shown. */
const CIRCLES = 50;
/** ms. Of a note whose end is further away no client is the author. */
const LONGEST = 60_000;
/** ms that a look at the locks waits for the notes. */
const PATIENCE = 1_000;
const LATE = "What callers say that wait has not been read: Redis did not answer in time.";
const CUT = `More callers wait than can be read: there may be circles beside those of the first ${MEMBERS} notes.`;

/** A circle, as it was found first. */
interface Found {
  readonly circle: Circle;
  /** The server's time then, in µs. */
  readonly at: number;
  isProven: boolean;
}

/**
 * Circles of callers that wait for each other, by the notes that such callers leave in Redis. It only reads.
 *
 * RACE: a note may be old: its scope may have let go of a lock that another caller of its process
 * has since then. So a circle counts when it is found again, with the same waits and turns, by
 * notes of which each says that it was true behind the first time: at that moment all of it was
 * true at once. Then the locks must show each of its holds, and its waiters: notes alone prove
 * nothing.
 */
export class Deadlocks {
  readonly #redis: NonNullable<LockUIOptions["redis"]>;
  #found = new Map<string, Found>();
  /** What was asked for and has not been answered: no second one would be sooner. */
  #asked: Promise<unknown> | null = null;
  #now = 0;
  /** Why it may not know of all circles. Null: it does. */
  trouble: string | null = null;

  constructor(redis: NonNullable<LockUIOptions["redis"]>) {
    this.#redis = redis;
  }

  /**
   * Reads the notes as they are now. Never rejects, nor waits for long: the locks can be shown
   * without them.
   */
  async refresh(): Promise<void> {
    try {
      const redis = this.#redis;
      this.#asked ??= redis.callBuffer("EVAL", lua.notes.lua, 1, KEY, MEMBERS).finally(() => {
        this.#asked = null;
      });
      // RACE: notes that come while the locks are listed are newer than some of these, and would be
      // held against what is over. So what is late counts for no look but the next.
      const reply = await pTimeout(this.#asked, { milliseconds: PATIENCE, fallback: () => null });
      if (reply === null) {
        this.#found.clear();
        this.trouble = LATE;
        return;
      }
      const [now, members] = listOf(reply);
      this.#read(Number(now), listOf(members).map(String));
    } catch (error) {
      this.#found.clear();
      this.trouble = `What callers say that wait could not be read: ${error instanceof Error ? error.message : String(error)}`;
    }
  }

  #read(now: number, members: readonly string[]): void {
    this.#now = now;
    this.trouble = members.length < MEMBERS ? null : CUT;
    const found = new Map<string, Found>();
    for (const circle of circlesOf(notesOf(members, now))) {
      const one = this.#found.get(circle.key) ?? { circle, at: now, isProven: false };
      one.isProven ||= circle.callers.every(({ note }) => note.after >= one.at);
      found.set(circle.key, { ...one, circle });
    }
    this.#found = found;
  }

  /** Those that are proven, and that these locks show. */
  among(locks: readonly Listed[]): ShownCircle[] {
    const proven = [...this.#found.values()].filter(({ isProven }) => isProven);
    if (proven.length === 0) return [];
    const byName = new Map(locks.map((lock) => [`${lock.kind} ${lock.name}`, lock]));
    return proven.flatMap(({ circle }) => this.#shown(circle, byName) ?? []);
  }

  #shown(circle: Circle, locks: ReadonlyMap<string, Listed>): ShownCircle | null {
    const cycle: ShownCircle["cycle"][number][] = [];
    for (const { note, hold, waitsFor } of circle.callers) {
      const [held, wanted] = [listed(hold.ref, locks), listed(waitsFor, locks)];
      const holder = held?.holders.find(({ id }) => id === hold.id);
      const client = note.id.slice(0, note.id.lastIndexOf("/"));
      // Behind its own process a caller waits there, and not in Redis.
      if (!held || !holder || !wanted || !isAt(client, wanted)) return null;
      cycle.push({
        kind: held.kind,
        name: held.name,
        holder: shownHolder(holder),
        waitsFor: { kind: wanted.kind, name: wanted.name },
        waitedFor: note.since > 0 ? Math.max(0, Math.round((this.#now - note.since) / 1_000)) : null,
      });
    }
    return { isSure: circle.isSure, rejected: circle.rejected !== null, cycle };
  }
}

const isAt = (client: string, { waiters, holders }: Listed): boolean =>
  [...(waiters ?? []), ...holders].some((one) => clientOf(one) === client);

function listed(ref: string, locks: ReadonlyMap<string, Listed>): Listed | undefined {
  const lock = lockOfNote(ref);
  return lock ? locks.get(`${NOTED_KINDS[lock.protocol]} ${lock.name}`) : undefined;
}

/**
 * What can be read and has not ended, now in µs, each once, in one order: a circle is found from
 * the same caller each time.
 */
function notesOf(members: readonly string[], now: number): Note[] {
  const notes = new Map<string, Note>();
  for (const member of members) {
    const [, end, text = ""] = /^\S+ (\d+) (\S+ .+)$/.exec(member) ?? [];
    const left = Number(end) - now / 1_000;
    const read = left > 0 && left <= LONGEST ? decodeNote(text) : null;
    // No client knows what will be true. Such a note would prove a circle at the first sight.
    const note = read && read.after <= now ? read : null;
    const known = note && notes.get(note.id);
    if (note && (!known || known.after < note.after)) notes.set(note.id, note);
  }
  return [...notes.values()].sort((one, other) => (one.id < other.id ? -1 : 1));
}

/** At most one through each caller. */
export function circlesOf(notes: readonly Note[]): Circle[] {
  const left = entangled(notes);
  const holders = holdersOf(left);
  const circles: Circle[] = [];
  const seen = new Set<string>();
  for (const note of left) {
    if (seen.has(note.id) || circles.length === CIRCLES) continue;
    const circle = circleOf(note, holders);
    if (!circle) continue;
    circles.push(circle);
    for (const { note } of circle.callers) seen.add(note.id);
  }
  return circles;
}

/**
 * Those that are in some circle, in their order: a crowd behind a circle, and a chain from one to
 * another, are in none. By Tarjan's search, in which each caller and each lock is visited once: two
 * callers are in one part when each waits, over others, for the other.
 */
function entangled(notes: readonly Note[]): Note[] {
  const holders = holdersOf(notes);
  const numbers = new Map<Note | string, number>();
  const path: (Note | string)[] = [];
  const found = new Set<Note>();
  /** Returns the lowest number on the path to which a way leads from here. */
  const visit = (at: Note | string): number => {
    const own = numbers.size;
    numbers.set(at, own);
    const depth = path.push(at) - 1;
    let lowest = own;
    const see = (next: Note | string): void => {
      lowest = Math.min(lowest, numbers.get(next) ?? visit(next));
    };
    if (typeof at === "string") for (const { holder } of holders.get(at) ?? []) see(holder);
    else for (const ref of at.waits) see(ref);
    if (lowest === own) {
      const part = path.splice(depth);
      for (const one of part) numbers.set(one, Number.POSITIVE_INFINITY);
      const callers = part.filter((one) => typeof one !== "string");
      // One alone waits for what it holds itself.
      if (callers.length > 1) for (const one of callers) found.add(one);
    }
    return lowest;
  };
  for (const note of notes) if (!numbers.has(note)) visit(note);
  return notes.filter((note) => found.has(note));
}
