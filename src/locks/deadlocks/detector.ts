import { circleText, DeadlockError } from "../../api/errors.ts";
import type { Events } from "../../api/events.ts";
import { DEADLOCK_AFTER, DEADLOCK_AGAIN, WARN_AGAIN } from "../../defaults.ts";
import type { Commands } from "../../redis/commands.ts";
import { deadlocksLua as lua } from "../../redis/lua.generated.ts";
import { isRefusal } from "../../redis/replies.ts";
import { clocks } from "../../util/clock.ts";
import { duration } from "../../util/duration.ts";
import { CallTimer, type Timers } from "../../util/timers.ts";
import { warn } from "../../util/warn.ts";
import { type Circle, circleOf, holdersOf, type Inspections, type Look, seeing } from "./circle.ts";
import { decodeNote, encodeNote, isNoted, type Note, type NotedHold } from "./note.ts";
import { type ScopedWait, Watched } from "./watched.ts";

/**
 * Finds deadlocks across processes. A caller that has long waited in a scope with a hold writes a
 * note of both to Redis, and renews it every few seconds; other callers cost nothing.
 *
 * Protects callers from the report of a deadlock that never existed. A note may be old: its scope
 * may have released a lock that another caller of its process now has, in the same hold. So a
 * circle counts only when it is found twice, with the same turns, and the second time by notes that
 * the clients wrote, from their own knowledge, after the first time: at that first moment all of it
 * was true at once. Then Redis must show each of its holds, and its waiters. Any client may write
 * notes, so notes alone prove nothing.
 */
export class Detector {
  readonly #commands: Commands;
  readonly #context: Context;
  readonly #look: Look;
  readonly #rejects: boolean;
  readonly #watched = new Set<Watched>();
  readonly #timer = new CallTimer(() => this.#ring());
  #made = 0;
  #isOff = false;
  #lastWarning = Number.NEGATIVE_INFINITY;

  constructor(commands: Commands, context: Context, look: Look, rejects: boolean) {
    this.#commands = commands;
    this.#context = context;
    this.#look = look;
    this.#rejects = rejects;
  }

  /** Call it when a caller begins to wait, and the function that it returns when the wait ends. */
  watch(wait: ScopedWait): () => void {
    if (this.#isOff || !wait.locks.some(({ kind }) => isNoted(kind.protocol))) return () => {};
    const one = new Watched(`${this.#context.clientId}/${++this.#made}`, wait);
    this.#watched.add(one);
    this.#ringAt(one.due);
    return () => {
      if (one.isOver) return;
      one.isOver = true;
      this.#watched.delete(one);
      if (one.noted.size > 0) this.#write(one, [], null).catch(() => {});
    };
  }

  #ringAt(at: number): void {
    if (at < this.#timer.at) this.#context.timers.set(this.#timer, at);
  }

  #ring(): void {
    const at = clocks.mono.now();
    let next = Number.POSITIVE_INFINITY;
    let room = AT_ONCE;
    for (const one of this.#watched) {
      if (one.due <= at && room-- > 0) {
        one.due = Number.POSITIVE_INFINITY;
        void this.#walk(one);
      }
      if (one.due < next) next = one.due;
    }
    if (next < Number.POSITIVE_INFINITY) this.#ringAt(Math.max(next, at + COARSE));
  }

  /** Never rejects: the caller keeps waiting, whatever happens here. */
  async #walk(one: Watched): Promise<void> {
    let circle: Circle | null = null;
    try {
      circle = await this.#find(one);
      if (circle && !one.isOver) await this.#suspect(one, circle);
    } catch (error) {
      // Without the rights for it, or on a server without the command, it would fail each time.
      if (isRefusal(error)) {
        this.#isOff = true;
        this.#watched.clear();
      }
    }
    if (one.isOver || this.#isOff) return;
    one.due = clocks.mono.now() + (circle ? DEADLOCK_AGAIN : DEADLOCK_AFTER);
    this.#ringAt(one.due);
  }

  /** Writes or renews a note, and follows those of others. */
  async #find(one: Watched): Promise<Circle | null> {
    const { ended, isAway } = this.#commands;
    const holds = one.holds();
    if (ended || isAway || (holds.length === 0 && one.noted.size === 0)) return null;
    const waited = clocks.mono.now() - one.since;
    const { id, waits, began: since, after, wait } = one;
    const isRead = wait.locks.every(({ kind }) => kind.mode === "read");
    const note: Note = { id, waits, isRead, since, after, rejects: this.#rejects, holds };
    const found = await this.#write(one, holds, note);
    one.after = found.at;
    one.began ||= Math.floor(found.at - waited * 1_000);
    return circleOf({ ...note, since: one.began }, holdersOf(found.notes));
  }

  async #write(one: Watched, holds: readonly NotedHold[], note: Note | null) {
    const held = new Set(holds.map(({ ref }) => ref));
    const former = [...one.noted].filter((ref) => !held.has(ref));
    for (const ref of held) one.noted.add(ref);
    const life = note && held.size > 0 ? 3 * DEADLOCK_AFTER : 0;
    const { at, notes } = await this.#commands.run(lua.note, [this.#commands.keys.waits], {
      id: one.id,
      life,
      note: note ? encodeNote(note) : "",
      held: held.size,
      refs: [...held, ...former],
    });
    for (const ref of former) one.noted.delete(ref);
    const found = notes.map((text) => decodeNote(text.note)).filter((seen) => seen !== null);
    // A note from the future cannot be genuine. It would count as written after any first sight.
    return { at, notes: found.filter(({ after }) => after <= at) };
  }

  async #suspect(one: Watched, circle: Circle): Promise<void> {
    if (one.suspected?.key !== circle.key) one.suspected = { key: circle.key, at: one.after };
    // RACE: a note that was written earlier may describe a turn that had ended before the first
    // walk read it. So each must be newer.
    else if (one.judged !== circle.key && circle.isLaterThan(one.suspected.at))
      await this.#judge(one, circle);
  }

  async #judge(one: Watched, circle: Circle): Promise<void> {
    const cycle = await circle.confirm(this.#look);
    const own = circle.ownHold;
    // RACE: the lock may have been released, or the caller may have got its own, while Redis was
    // asked.
    const isHeld = one.holds().some(({ ref, turn }) => ref === own?.ref && turn === own.turn);
    if (!cycle || one.isOver || !isHeld) return;
    one.judged = circle.key;
    const { rejected, name } = circle;
    // Another caller of the circle will leave it.
    if (rejected !== null && rejected !== one.id) return;
    const { events } = this.#context;
    const { kind, leave } = one.wait;
    const waited = clocks.mono.now() - one.since;
    const isRejected = rejected !== null;
    if (events.hears("deadlock"))
      events.tell("deadlock", { name, kind, waitedFor: waited, cycle, rejected: isRejected });
    if (isRejected) leave(new DeadlockError(name, cycle));
    else this.#warn(`A caller has waited for ${duration(waited)} in a deadlock: ${circleText(cycle)}`);
  }

  /** At most once a minute. */
  #warn(what: string): void {
    const at = clocks.mono.now();
    if (at - this.#lastWarning < WARN_AGAIN) return;
    this.#lastWarning = at;
    warn(what, "DEADLOCK");
  }
}

/** What the detector needs of its client. */
interface Context {
  readonly clientId: string;
  readonly timers: Timers;
  readonly events: Events;
}

/** The detector that a client's option asks for. */
export function detectorOf(
  option: "reject" | "warn" | "off",
  commands: Commands,
  context: Context,
  inspections: () => Inspections,
): Detector | null {
  if (option === "off") return null;
  return new Detector(commands, context, seeing(inspections), option === "reject");
}

/**
 * One ring of the timer handles at most this many callers, and rings come no closer than this, in
 * ms.
 */
const AT_ONCE = 100;
const COARSE = 50;
