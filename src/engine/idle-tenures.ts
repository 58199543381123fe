import { atTurnEnd } from "../core/event-loop-turn.ts";
import { ttlFor } from "../core/fits.ts";
import type { LockKind } from "../core/lock-kind.ts";
import { HEAR_AGAIN, KEPT_SWEEP, RECALL_LATE, STAY_RENEWAL, STAY_WINDOW } from "../defaults.ts";
import { sendAtTurnEnd } from "../redis/late.ts";
import type { HolderFlag, ReleaseAnswer, RenewAnswer } from "../redis/replies.ts";
import type { Transport } from "../redis/transport.ts";
import { clocks, type Instant, now } from "../util/clock.ts";
import { duration } from "../util/duration.ts";
import { atProcessEnd, isEnding } from "../util/process-end.ts";
import { quote } from "../util/quote.ts";
import { CallTimer, isSet, type Timers } from "../util/timers.ts";
import { warn } from "../util/warn.ts";
import type { Cleanup } from "./cleanup.ts";
import type { GrantInbox } from "./grant-inbox.ts";
import type { Hold } from "./lease/hold.ts";
import type { Terms } from "./lease/terms.ts";

/**
 * The client's tenures that callers enter without a round trip, and those that are idle. Renews the
 * first, so that their next caller need not wait for Redis; ends the second, so that other
 * processes do not wait for unused locks.
 */
export class IdleTenures {
  /** Upper bound of a renewal's TTL, in ms. */
  readonly window: number;
  #isClosed = false;
  readonly #client: Client;
  /** Tenures that a caller has entered without a round trip since their last renewal was sent. */
  #used: UsedTenure[] = [];
  readonly #renewing = new CallTimer(() => this.#renewUsed());
  /** Tenures that continue, or end, when the event loop has turned. */
  #resting: UsedTenure[] = [];
  /** Tenures that have been idle, whether or not they are now; the one kept longest comes first. */
  readonly #kept = new Set<KeptTenure>();
  readonly #sweeping = new CallTimer(() => this.#sweep());
  #heardAt = Number.NEGATIVE_INFINITY;
  #warnedAt = Number.NEGATIVE_INFINITY;

  constructor(client: Client) {
    this.#client = client;
    this.window = Math.min(client.window, STAY_WINDOW);
  }

  /** Must no more locks stay, because the client or the process ends? */
  get isClosed(): boolean {
    return this.#isClosed || isEnding;
  }

  /** A caller enters this tenure without a round trip. */
  used(tenure: UsedTenure): void {
    if (tenure.isUsed) return;
    tenure.isUsed = true;
    this.#used.push(tenure);
    if (!isSet(this.#renewing)) this.#client.timers.set(this.#renewing, clocks.mono.now() + STAY_RENEWAL);
  }

  // ---- after a turn of the event loop

  /** The next caller gets it then. */
  resumeLater(tenure: UsedTenure): void {
    this.#resting.push(tenure);
    atTurnEnd(this.#turned);
  }

  /** It ends then, unless a caller comes. */
  leaveLater(tenure: UsedTenure): void {
    lingering.add(this);
    this.resumeLater(tenure);
  }

  readonly #turned = (): void => {
    // Skip a tenure that was leaving and is cached by now.
    for (const tenure of this.#resting.splice(0))
      if (!tenure.isOver && tenure.state !== "idle") tenure.resume();
    if (this.#kept.size === 0) lingering.delete(this);
  };

  // ---- renewals

  /**
   * Renews the used ones before their confirmation is too old. Long bodies need none: the watchdog
   * renews those.
   */
  #renewUsed(): void {
    const { mono } = now();
    const due: UsedTenure[] = [];
    const used = this.#used;
    this.#used = [];
    for (const tenure of used) {
      if (tenure.isOver) continue;
      // Renewed less than half the interval ago: it is due at the next round.
      if (mono - tenure.sentAt < STAY_RENEWAL / 2) this.#used.push(tenure);
      else due.push(tenure);
    }
    for (const batch of batches(due)) void this.#renew(batch);
    if (this.#used.length > 0) this.#client.timers.set(this.#renewing, mono + STAY_RENEWAL);
  }

  async #renew(tenures: readonly UsedTenure[]): Promise<void> {
    const { inbox } = this.#client;
    const sent = now();
    const digits: (HolderFlag | null)[] = [];
    const renewals = tenures.map((tenure) => {
      const { hold, terms } = tenure;
      const ttl = Math.min(ttlFor(terms, this.window), this.window);
      const flag = inbox.hears(hold.name) ? (terms.linger > 0 ? 2 : 1) : null;
      hold.asks(ttl, sent.mono);
      tenure.asks(sent.mono);
      tenure.isUsed = false;
      digits.push(flag);
      return { hold, ttl, flag } as const;
    });
    try {
      const answers = await kindOf(tenures).renew(renewals, this.window / 3);
      for (const [i, tenure] of tenures.entries()) {
        const answer = answers[i];
        if (answer) tenure.renewed(tenure.hold, sent, answer, digits[i] ?? null);
      }
    } catch {
      // Whether another process waits is unknown. Callers here do not continue for long without
      // that. The hold ends by its deadline.
      const at = clocks.mono.now();
      for (const { hold } of tenures) hold.want(at);
      this.#end(tenures.filter(({ state }) => state === "idle"));
    }
  }

  // ---- idle tenures

  /** No caller is inside any more. */
  keep(tenure: KeptTenure): void {
    // Includes a tenure that was leaving before, and was never idle.
    if (this.#kept.has(tenure)) return;
    lingering.add(this);
    this.#kept.add(tenure);
    if (this.#kept.size > this.#client.linger.most) this.#makeRoom();
    if (!isSet(this.#sweeping)) this.#client.timers.set(this.#sweeping, clocks.mono.now() + KEPT_SWEEP);
  }

  /** Redis does not know yet that it must notify this process of waiters. */
  tell(tenure: UsedTenure): void {
    void this.#renew([tenure]);
  }

  /** Ends tenures whose time is over, and those whose recall message would not be received. */
  #sweep(): void {
    const { inbox, timers } = this.#client;
    const mono = clocks.mono.now();
    const over: KeptTenure[] = [];
    for (const tenure of this.#kept) {
      const { hold, keeping, isOver, state } = tenure;
      if (isOver) this.#kept.delete(tenure);
      else if (state !== "idle") continue;
      else if (mono >= (keeping?.until ?? 0) || !inbox.hears(hold.name)) over.push(tenure);
    }
    this.#end(over);
    if (this.#kept.size > 0) timers.set(this.#sweeping, mono + KEPT_SWEEP);
    else lingering.delete(this);
  }

  /**
   * Ends those unused for the longest time, approximately: a used one moves to the end of the line
   * once.
   */
  #makeRoom(): void {
    const over: KeptTenure[] = [];
    for (const tenure of this.#kept) {
      if (this.#kept.size <= this.#client.linger.most) break;
      const { isOver, state, keeping } = tenure;
      this.#kept.delete(tenure);
      if (isOver || !keeping) continue;
      if (state === "idle" && keeping.since <= keeping.keptAt) over.push(tenure);
      else {
        keeping.keptAt = keeping.since;
        this.#kept.add(tenure);
      }
    }
    this.#end(over);
  }

  /** No further lock may linger. */
  close(): void {
    this.#isClosed = true;
    this.endAll();
    lingering.delete(this);
  }

  /** Ends all: the subscription that reports waiters is lost, or the client ends. */
  endAll(): void {
    const all = [...new Set([...this.#kept, ...this.#resting])];
    this.#kept.clear();
    this.#end(all.filter(({ isOver, state }) => !isOver && (state === "idle" || state === "leaving")));
  }

  #end(tenures: readonly KeptTenure[]): void {
    const begun = new Set<LockKind>();
    for (const batch of batches(tenures)) {
      const kind = kindOf(batch);
      void this.#release(batch, !begun.has(kind));
      begun.add(kind);
    }
  }

  async #release(tenures: readonly KeptTenure[], isFirst: boolean): Promise<void> {
    const { commands, cleanup } = this.#client;
    const { releaseAll } = kindOf(tenures);
    const { epoch } = commands;
    const holds: Hold[] = tenures.map(({ hold }) => hold);
    for (const tenure of tenures) tenure.takeLeave();
    cleanup.releases++;
    let answers: ReleaseAnswer[] = [];
    try {
      answers = (await releaseAll?.(holds, isFirst)) ?? [];
    } catch {
      // No caller waits for it; they are withdrawn until Redis answers.
    }
    for (const [i, tenure] of tenures.entries())
      tenure.leaveAnswered(answers[i] ?? null, commands.epoch !== epoch);
    cleanup.releases--;
    if (cleanup.isEnding) cleanup.look();
  }

  // ----

  /**
   * A cached lock is recalled. If the message was read late because the event loop was blocked,
   * other processes wait without any caller here knowing. Warns at most once a minute.
   */
  recalled(name: string): void {
    const mono = clocks.mono.now();
    const late = !isSet(this.#sweeping) ? 0 : mono - this.#sweeping.at;
    if (late < RECALL_LATE || mono - this.#warnedAt < MINUTE) return;
    this.#warnedAt = mono;
    warn(
      `Another process wanted ${quote(name)}, which this one had cached, and was answered up to ${duration(late)} late, ` +
        "because the event loop was blocked or the process was stopped: break up what blocks it, or do without `linger`.",
      "LOCK_RECALLED_LATE",
    );
  }

  /**
   * This lock could be cached if its channel were subscribed to: subscribes for the next time, now
   * and then.
   */
  hear(name: string): void {
    const at = clocks.mono.now();
    if (at - this.#heardAt < HEAR_AGAIN) return;
    this.#heardAt = at;
    const { inbox } = this.#client;
    inbox.ready(inbox.channelOf(name)).catch(() => {});
  }
}

/** How a tenure stays with its process while no caller is inside. */
export interface Keeping {
  /** When it became idle, and how long that may last, on the monotonic clock. 0: never yet. */
  since: number;
  until: number;
  /** `since`, when it was last put at the end of the line. */
  keptAt: number;
  /** How often it was taken again, and how many pairs of commands that saved. */
  uses: number;
  saved: number;
}

export const newKeeping = (): Keeping => ({ since: 0, until: 0, keptAt: 0, uses: 0, saved: 0 });

/** A tenure that may stay with no caller inside. */
export interface KeptTenure {
  readonly hold: Hold;
  readonly kind: LockKind;
  readonly state: "inside" | "idle" | "leaving" | "ended";
  readonly isOver: boolean;
  readonly keeping: Keeping | null;
  /** It ends while no caller is inside. The code that calls this sends its release. */
  takeLeave(): void;
  /** The release was answered; null: it was not. */
  leaveAnswered(answer: ReleaseAnswer | null, isBroken: boolean): void;
}

/** A tenure that callers enter without a round trip. */
export interface UsedTenure extends KeptTenure {
  /** What the last caller inside asked for. */
  readonly terms: Terms;
  /**
   * Has a caller entered without a round trip since the last renewal was sent, and when was that?
   */
  isUsed: boolean;
  readonly sentAt: number;
  /** A renewal is sent. */
  asks(at: number): void;
  /** It was answered. `flag`: what it asked for. */
  renewed(hold: Hold, sent: Instant, answer: RenewAnswer, flag: HolderFlag | null): void;
  /** The event loop has turned: the next caller may enter, or there is none. */
  resume(): void;
}

/** What idle tenures need of their client. */
interface Client {
  readonly timers: Timers;
  readonly inbox: GrantInbox;
  readonly commands: Transport;
  readonly cleanup: Cleanup;
  readonly linger: { readonly most: number };
  readonly window: number;
}

const MINUTE = 60_000;

/** Clients of this process that cache locks, or did. */
const lingering = new Set<IdleTenures>();

// The process ends, by `process.exit()` or an uncaught error: commands written here still leave it,
// so other processes need not wait for unused locks to expire.
atProcessEnd(() => {
  sendAtTurnEnd(() => {
    for (const idle of lingering) idle.endAll();
  });
});

function kindOf([tenure]: readonly KeptTenure[]): LockKind {
  if (!tenure) throw new TypeError("no tenures");
  return tenure.kind;
}

/** Groups them by kind, with as many in each as one command takes. */
function batches<T extends KeptTenure>(tenures: readonly T[]): T[][] {
  const open = new Map<LockKind, T[]>();
  const all: T[][] = [];
  for (const tenure of tenures) {
    const { kind } = tenure;
    let batch = open.get(kind);
    if (!batch || batch.length >= kind.batch) {
      batch = [];
      open.set(kind, batch);
      all.push(batch);
    }
    batch.push(tenure);
  }
  return all;
}
