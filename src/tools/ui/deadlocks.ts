import pTimeout from "p-timeout";
import type { Listed } from "../../index.ts";
import {
  type Circle,
  circleOf,
  clientOf,
  decodeNote,
  holdersOf,
  type Link,
  listOf,
  lockOfNote,
  NOTED_KINDS,
  type Note,
} from "../../inside.ts";
import { uiLua as lua } from "./lua.generated.ts";
import type { ShownCircle } from "./shown.ts";
import { shownHolder } from "./views.ts";

const KEY = "holdfast:waits";
/** Members that are read: a caller has one for each lock that its scope holds. */
const MEMBERS = 1_000;
/** The limit for the deadlocks that are found and shown. */
const CIRCLES = 50;
/** ms. No client writes a note that ends later than this. */
const LONGEST = 60_000;
/** ms that a look at the locks waits for the notes. */
const PATIENCE = 1_000;
const LATE = "The notes of waiting callers were not read: Redis did not answer in time.";
const CUT = `There are more notes of waiting callers than can be read: deadlocks beyond the first ${MEMBERS} notes are not shown.`;

/** A deadlock, as it was first found. */
interface Found {
  readonly circle: Circle;
  /** The server's time then, in µs. */
  readonly at: number;
  isProven: boolean;
}

/**
 * Finds deadlocks by the notes that waiting callers leave in Redis. It only reads.
 *
 * RACE: a note may be old: its scope may have released a lock that another caller of its process
 * has taken since then. So a deadlock counts when it is found again, with the same waits and turns,
 * and every note says that it was true after the first time: at that moment all of it was true at
 * once. Then the locks must show each of its holds, and its waiters: notes alone prove nothing.
 */
export class Deadlocks {
  readonly #link: Link;
  readonly #key: string;
  #found = new Map<string, Found>();
  /** The unanswered command: a second one would not be answered sooner. */
  #asked: Promise<unknown> | null = null;
  #now = 0;
  /** Why some deadlocks may be missing, in a sentence. Null: none are. */
  trouble: string | null = null;

  /** `prefix`: of the clients whose callers wait. */
  constructor(link: Link, prefix = "") {
    this.#link = link;
    this.#key = prefix + KEY;
  }

  /** Is one found that is not proven yet? Its callers renew their notes every second. */
  get isUnsure(): boolean {
    return [...this.#found.values()].some(({ isProven }) => !isProven);
  }

  /** The locks of those that are proven, by kind and name: `among` needs them. */
  get locks(): Pick<Listed, "kind" | "name">[] {
    const refs = this.#proven.flatMap(({ circle }) => circle.callers.map(({ waitsFor }) => waitsFor));
    return [...new Set(refs)].flatMap((ref) => {
      const lock = lockOfNote(ref);
      return lock ? { kind: NOTED_KINDS[lock.protocol], name: lock.name } : [];
    });
  }

  get #proven(): Found[] {
    return [...this.#found.values()].filter(({ isProven }) => isProven);
  }

  /**
   * Reads the notes as they are now. Never rejects, and does not wait for long: the locks can be
   * shown without them.
   */
  async refresh(): Promise<void> {
    try {
      this.#asked ??= this.#link.commandOn(this.#key, ["EVAL", lua.notes.lua, 1], [MEMBERS]).finally(() => {
        this.#asked = null;
      });
      // RACE: notes that arrive while the locks are listed are newer than some of these locks, and
      // would be compared with an older state. So a late answer counts only for the next look.
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
      this.trouble = `The notes of waiting callers could not be read: ${error instanceof Error ? error.message : String(error)}`;
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
    const proven = this.#proven;
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
      // A caller that waits for another caller of its process waits in that process, not in Redis.
      if (!held || !holder || !wanted || !isAt(client, wanted)) return null;
      cycle.push({
        kind: held.kind,
        name: held.name,
        holder: shownHolder(holder, held, null),
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
 * The notes that can be read and have not ended, each once. `now`: in µs. In one order, so that a
 * deadlock is found from the same caller each time.
 */
function notesOf(members: readonly string[], now: number): Note[] {
  const notes = new Map<string, Note>();
  for (const member of members) {
    const [, end, text = ""] = /^\S+ (\d+) (\S+ .+)$/.exec(member) ?? [];
    const left = Number(end) - now / 1_000;
    const read = left > 0 && left <= LONGEST ? decodeNote(text) : null;
    // A note from the future cannot be genuine. It would prove a deadlock at the first look.
    const note = read && read.after <= now ? read : null;
    const known = note && notes.get(note.id);
    if (note && (!known || known.after < note.after)) notes.set(note.id, note);
  }
  return [...notes.values()].sort((one, other) => (one.id < other.id ? -1 : 1));
}

/** At most one deadlock through each caller. */
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
 * The notes that are part of a deadlock, in their order. Callers that wait for a deadlocked caller,
 * or between two deadlocks, are not part of one. By Tarjan's search, which visits each caller and
 * each lock once: two callers are in one component if each waits, directly or through others, for
 * the other.
 */
function entangled(notes: readonly Note[]): Note[] {
  const holders = holdersOf(notes);
  const numbers = new Map<Note | string, number>();
  const path: (Note | string)[] = [];
  const found = new Set<Note>();
  /** Returns the lowest number on the path that can be reached from here. */
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
      // A single caller waits for a lock that it holds itself.
      if (callers.length > 1) for (const one of callers) found.add(one);
    }
    return lowest;
  };
  for (const note of notes) if (!numbers.has(note)) visit(note);
  return notes.filter((note) => found.has(note));
}
