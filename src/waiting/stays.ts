import { HEAR_AGAIN, KEPT_SWEEP, RECALL_LATE, STAY_RENEWAL, STAY_WINDOW, TURNS_TIME } from "../defaults.ts";
import { quote } from "../errors.ts";
import type { Hold } from "../lease/hold.ts";
import type { ReleaseAnswer, ToldDigit } from "../redis/replies.ts";
import type { Transport } from "../redis/transport.ts";
import { together } from "../redis/writes.ts";
import { clocks, now } from "../util/clock.ts";
import { duration } from "../util/duration.ts";
import { atProcessEnd, isEnding } from "../util/process-end.ts";
import { setImmediate } from "../util/real-timers.ts";
import { CallTimer, type Timers } from "../util/timers.ts";
import type { Cleanup } from "./cleanup.ts";
import type { GrantInbox } from "./grant-inbox.ts";
import type { LockKind } from "./lock-kind.ts";
import { type Stay, ttlOf } from "./stay.ts";

/** What they need of their client. */
interface Client {
  readonly timers: Timers;
  readonly inbox: GrantInbox;
  readonly commands: Transport;
  readonly cleanup: Cleanup;
  readonly linger: { readonly most: number };
  readonly window: number;
}

/**
 * What all stays of a client share. Protects the next caller of each from waiting for Redis, because what Redis has said last is
 * hardly ever too old; everything else in this process from callers that come and go without ever letting the event loop turn;
 * and other processes from locks that nobody uses here any more.
 */
export class Stays {
  /** The longest that one is renewed for, in ms. */
  readonly window: number;
  #isClosed = false;
  readonly #client: Client;
  /** In which a caller has come without asking since their last renewal was sent. */
  #used: Stay[] = [];
  readonly #renewing = new CallTimer(() => this.#renewUsed());
  /** When the first caller came in this turn of the event loop; 0: none has. */
  #busySince = 0;
  #resting: Stay[] = [];
  /** Those that have been idle, whether or not they are now; the one that was kept first comes first. */
  readonly #kept = new Set<Stay>();
  readonly #sweeping = new CallTimer(() => this.#sweep());
  #heardAt = Number.NEGATIVE_INFINITY;
  #warnedAt = Number.NEGATIVE_INFINITY;

  constructor(client: Client) {
    this.#client = client;
    this.window = Math.min(client.window, STAY_WINDOW);
  }

  /** May no further lock stay, because the client or the process ends? */
  get isClosed(): boolean {
    return this.#isClosed || isEnding;
  }

  /** A caller comes into this stay, and nobody was asked. */
  begins(stay: Stay): void {
    if (stay.isUsed) return;
    stay.isUsed = true;
    this.#used.push(stay);
    if (this.#renewing.index < 0) this.#client.timers.set(this.#renewing, clocks.mono.now() + STAY_RENEWAL);
  }

  // ---- turns of the event loop

  /**
   * Have callers come and gone for so long that the event loop must turn before the next one? Each goes on in a microtask, and
   * those of many locks could go on for ever.
   */
  isTired(mono: number): boolean {
    if (this.#busySince > 0) return mono - this.#busySince >= TURNS_TIME;
    this.#busySince = mono;
    setImmediate(this.#turned);
    return false;
  }

  /** The next caller comes behind a turn of the event loop. */
  rest(stay: Stay): void {
    this.#resting.push(stay);
  }

  /** It ends with this turn of the event loop, unless a caller comes. */
  leave(stay: Stay): void {
    stay.isKept = true;
    this.isTired(clocks.mono.now());
    this.#resting.push(stay);
    keepers.add(this);
  }

  readonly #turned = (): void => {
    this.#busySince = 0;
    // Not one that was leaving, and is kept by now.
    for (const stay of this.#resting.splice(0))
      if (!stay.isOver && stay.state !== "idle") stay.home.rested(stay);
    if (this.#kept.size === 0) keepers.delete(this);
  };

  // ---- renewals

  /**
   * Stays that are used are renewed before what is known of them is too old. Long bodies need none: the watchdog renews those.
   */
  #renewUsed(): void {
    const { mono } = now();
    const due: Stay[] = [];
    const used = this.#used;
    this.#used = [];
    for (const stay of used) {
      if (stay.isOver) continue;
      // Half of the time at the most: it is due at the next look.
      if (mono - stay.sentAt < STAY_RENEWAL / 2) this.#used.push(stay);
      else due.push(stay);
    }
    for (const batch of batches(due)) void this.#renew(batch);
    if (this.#used.length > 0) this.#client.timers.set(this.#renewing, mono + STAY_RENEWAL);
  }

  async #renew(stays: readonly Stay[]): Promise<void> {
    const { inbox } = this.#client;
    const sent = now();
    const digits: (ToldDigit | null)[] = [];
    const renewals = stays.map((stay) => {
      const { hold, terms } = stay;
      const { id, label, name, record } = hold;
      const ttl = Math.min(ttlOf(terms, this.window), this.window);
      const told = inbox.hears(name) ? (terms.linger > 0 ? 2 : 1) : null;
      hold.asks(ttl, sent.mono);
      stay.asks(sent.mono);
      stay.isUsed = false;
      digits.push(told);
      return { id, label, name, ttl, record, told } as const;
    });
    try {
      const answers = await kindOf(stays).renew(renewals, this.window / 3);
      for (const [i, stay] of stays.entries()) {
        const answer = answers[i];
        if (answer) stay.home.stayRenewed(stay, sent, answer, digits[i] ?? null);
      }
    } catch {
      // Does anybody wait? Nobody has said so, and callers here do not go on for long without it. The hold ends by its deadline.
      const at = clocks.mono.now();
      for (const { hold } of stays) hold.want(at);
      this.#end(stays.filter(({ state }) => state === "idle"));
    }
  }

  // ---- stays in which nobody is

  /** Nobody is inside any more. `mustTell`: Redis does not know yet that this process is to be told of waiters. */
  keep(stay: Stay, mustTell: boolean): void {
    stay.isKept = true;
    // Also one that was leaving before, and was never idle.
    if (!this.#kept.has(stay)) {
      keepers.add(this);
      this.#kept.add(stay);
      if (this.#kept.size > this.#client.linger.most) this.#makeRoom();
      if (this.#sweeping.index < 0) this.#client.timers.set(this.#sweeping, clocks.mono.now() + KEPT_SWEEP);
    }
    if (mustTell && !stay.isUsed) void this.#renew([stay]);
  }

  /** Those whose time is over; and where no message could tell that somebody waits. */
  #sweep(): void {
    const { inbox, timers } = this.#client;
    const mono = clocks.mono.now();
    const over: Stay[] = [];
    for (const stay of this.#kept) {
      if (stay.isOver) this.#kept.delete(stay);
      else if (stay.state === "idle" && (mono >= stay.until || !inbox.hears(stay.name))) over.push(stay);
      // Thousands are mostly not taken again soon: the names of their keys take more than all the rest of them.
      else if (stay.state === "idle") stay.hold.record = null;
    }
    this.#end(over);
    if (this.#kept.size > 0) timers.set(this.#sweeping, mono + KEPT_SWEEP);
    else keepers.delete(this);
  }

  /** The ones that were not used for the longest time, roughly: one that was used goes to the end of the line once. */
  #makeRoom(): void {
    const over: Stay[] = [];
    for (const stay of this.#kept) {
      if (this.#kept.size <= this.#client.linger.most) break;
      this.#kept.delete(stay);
      if (stay.isOver) continue;
      if (stay.state === "idle" && stay.since <= stay.keptAt) over.push(stay);
      else {
        stay.keptAt = stay.since;
        this.#kept.add(stay);
      }
    }
    this.#end(over);
  }

  /** No further one may linger. */
  close(): void {
    this.#isClosed = true;
    this.endAll();
    keepers.delete(this);
  }

  /** All of them: what tells of waiters is lost, or the client ends. */
  endAll(): void {
    const all = [...new Set([...this.#kept, ...this.#resting])];
    this.#kept.clear();
    this.#end(all.filter(({ isOver, state }) => !isOver && (state === "idle" || state === "leaving")));
  }

  #end(stays: readonly Stay[]): void {
    const begun = new Set<LockKind>();
    for (const batch of batches(stays)) {
      const kind = kindOf(batch);
      void this.#release(batch, !begun.has(kind));
      begun.add(kind);
    }
  }

  async #release(stays: readonly Stay[], isFirst: boolean): Promise<void> {
    const { commands, cleanup } = this.#client;
    const { releaseAll } = kindOf(stays);
    const { epoch } = commands;
    const holds: Hold[] = stays.map(({ hold }) => hold);
    for (const stay of stays) stay.home.takeLeave(stay);
    cleanup.releases++;
    let answers: ReleaseAnswer[] = [];
    try {
      answers = (await releaseAll?.(holds, isFirst)) ?? [];
    } catch {
      // Nobody waits for it; they are left until Redis answers.
    }
    for (const [i, stay] of stays.entries())
      stay.home.leaveAnswered(stay, answers[i] ?? null, commands.epoch !== epoch);
    cleanup.releases--;
    if (cleanup.isEnding) cleanup.look();
  }

  // ----

  /**
   * A kept lock is recalled. Was that read late, because the event loop stood still? Then other processes wait for it, and nobody
   * here would know. Told once a minute.
   */
  recalled(name: string): void {
    const mono = clocks.mono.now();
    const late = this.#sweeping.index < 0 ? 0 : mono - this.#sweeping.at;
    if (late < RECALL_LATE || mono - this.#warnedAt < MINUTE) return;
    this.#warnedAt = mono;
    process.emitWarning(
      `Another process wanted ${quote(name)}, which this one had cached, and was answered up to ${duration(late)} late, ` +
        "because the event loop was blocked: break up what blocks it, or do without `linger`.",
      { type: "HoldfastWarning", code: "LOCK_RECALLED_LATE" },
    );
  }

  /** This lock could be kept if its channel were heard: subscribed to for the next time, now and then. */
  hear(name: string): void {
    const at = clocks.mono.now();
    if (at - this.#heardAt < HEAR_AGAIN) return;
    this.#heardAt = at;
    const { inbox } = this.#client;
    inbox.ready(inbox.channelOf(name)).catch(() => {});
  }
}

const MINUTE = 60_000;

/** Clients of this process that keep locks, or did. */
const keepers = new Set<Stays>();

// The process ends, by `process.exit()` or an error that nobody caught: what is written here still leaves it, and other
// processes need not wait for the end of locks that nobody uses.
atProcessEnd(() => {
  together(() => {
    for (const stays of keepers) stays.endAll();
  });
});

const kindOf = ([stay]: readonly Stay[]): LockKind => {
  if (!stay) throw new TypeError("no stays");
  return stay.home.kind;
};

/** Those of one kind, as many as one command takes. */
function batches(stays: readonly Stay[]): Stay[][] {
  const open = new Map<LockKind, Stay[]>();
  const all: Stay[][] = [];
  for (const stay of stays) {
    const { kind } = stay.home;
    let batch = open.get(kind);
    if (!batch || batch.length >= kind.batch) {
      batch = [];
      open.set(kind, batch);
      all.push(batch);
    }
    batch.push(stay);
  }
  return all;
}
