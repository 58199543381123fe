import { HEAR_AGAIN, KEPT_SWEEP, RECALL_LATE, STAY_RENEWAL, STAY_WINDOW, WARN_AGAIN } from "../defaults.ts";
import { sendAtTurnEnd } from "../redis/late.ts";
import type { HolderFlag, ReleaseAnswer, RenewAnswer } from "../redis/replies.ts";
import type { Transport } from "../redis/transport.ts";
import { clocks, type Instant, now } from "../util/clock.ts";
import { duration } from "../util/duration.ts";
import { atProcessEnd, isEnding } from "../util/process-end.ts";
import { quote } from "../util/quote.ts";
import { CallTimer, isSet, type Timers } from "../util/timers.ts";
import { warn } from "../util/warn.ts";
import { ttlFor } from "./fits.ts";
import type { Keeping } from "./keeping.ts";
import type { Hold } from "./lease/hold.ts";
import { batches, renewAll } from "./lease/renewer.ts";
import type { SharedLease } from "./lease/shared-lease.ts";
import { LingerLearner } from "./linger-learner.ts";
import type { LockKind } from "./lock-kind.ts";

/**
 * A client's holds that callers enter without a round trip, and those that stay here with no caller
 * inside. Renews the first, so that their next caller need not wait for Redis; ends the second, so
 * that other processes do not wait for unused locks.
 */
export class Stays {
  /** Upper bound of a renewal's TTL, in ms. */
  readonly window: number;
  /** Decides which unlocked locks stay. */
  readonly learner = new LingerLearner();
  #isClosed = false;
  readonly #client: Client;
  /** Those that a caller has entered without a round trip since their last renewal was sent. */
  #used: UsedStay[] = [];
  readonly #renewing = new CallTimer(() => this.#renewUsed());
  /** Those that have been idle, whether or not they are now; the one kept longest comes first. */
  readonly #kept = new Set<Keeping>();
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

  /** Could a hold that is asked for by such a caller stay after it? */
  mayLinger(name: string, { watchdog, lease, linger }: SharedLease["terms"], kind: string): boolean {
    const isTooLong = !watchdog && lease > this.window;
    if (linger === 0 || kind === "multi" || isTooLong || this.isClosed) return false;
    const isHeard = this.#client.inbox.hears(name);
    // No process could recall it.
    if (!isHeard) this.#hear(name);
    return isHeard;
  }

  /** It could stay if its channel were subscribed to: subscribes for the next time, now and then. */
  #hear(name: string): void {
    const at = clocks.mono.now();
    if (at - this.#heardAt < HEAR_AGAIN) return;
    this.#heardAt = at;
    const { inbox } = this.#client;
    inbox.ready(inbox.channelOf(name)).catch(() => {});
  }

  /**
   * Could another process recall it, and would none wait too long if this one died? RACE: a claim or
   * an extension may be under way. The TTL that it sets counts, not the known one: if this process
   * died, others would wait that long for an unused lock.
   */
  maySpare({ name, mayLiveUntil }: Hold, mono: number): "yes" | "too long" | "unheard" {
    const { commands, inbox } = this.#client;
    if (mayLiveUntil > mono + this.window) return "too long";
    return !commands.isAway && inbox.hears(name) ? "yes" : "unheard";
  }

  // ---- renewals

  /** A caller enters this one without a round trip. */
  used(stay: UsedStay): void {
    if (stay.isUsed) return;
    stay.isUsed = true;
    this.#used.push(stay);
    if (!isSet(this.#renewing)) this.#client.timers.set(this.#renewing, clocks.mono.now() + STAY_RENEWAL);
  }

  /**
   * Renews the used ones before their confirmation is too old. Long bodies need none: the watchdog
   * renews those.
   */
  #renewUsed(): void {
    const { mono } = now();
    const used = this.#used;
    this.#used = [];
    const due: UsedStay[] = [];
    for (const stay of used) {
      // Renewed less than half the interval ago: it is due at the next round.
      if (stay.isOurs && stay.hold && mono - stay.hold.seen.mono < STAY_RENEWAL / 2) this.#used.push(stay);
      else {
        stay.isUsed = false;
        if (stay.isOurs) due.push(stay);
      }
    }
    for (const [kind, batch] of batches(due, kindOf)) void this.#renew(kind, batch);
    if (this.#used.length > 0) this.#client.timers.set(this.#renewing, mono + STAY_RENEWAL);
  }

  /** Redis does not know yet that it must notify this process of waiters. */
  tell(stay: UsedStay): void {
    void this.#renew(stay.kind, [stay]);
  }

  async #renew(kind: LockKind, stays: readonly UsedStay[]): Promise<void> {
    const { inbox } = this.#client;
    const asked: Asked[] = [];
    for (const stay of stays) {
      const { hold, last } = stay;
      if (!hold || !last) continue;
      const { terms } = last;
      const ttl = Math.min(ttlFor(terms, this.window), this.window);
      const flag = inbox.hears(hold.name) ? (terms.linger > 0 ? 2 : 1) : null;
      asked.push({ stay, last, hold, ttl, flag });
    }
    if (asked.length === 0) return;
    try {
      const { sent, answers } = await renewAll(kind, asked, this.window / 3);
      for (const [i, { stay, last, flag }] of asked.entries()) {
        const answer = answers[i];
        if (answer) stay.renewed(last, sent, answer, flag);
      }
    } catch {
      // Whether another process waits is unknown. Callers here do not continue for long without
      // that. The hold ends by its deadline.
      const at = clocks.mono.now();
      for (const { hold } of asked) hold.want(at);
      const kept = asked.flatMap(({ stay }) => stay.keeping ?? []);
      this.#end(kept.filter(({ hold, isIdle }) => isIdle && hold.wantedAt !== null));
    }
  }

  // ---- those that are idle

  /** No caller is inside any more. */
  keep(keeping: Keeping): void {
    if (this.#kept.has(keeping)) return;
    lingering.add(this);
    this.#kept.add(keeping);
    if (this.#kept.size > this.learner.most) this.#makeRoom();
    if (!isSet(this.#sweeping)) this.#client.timers.set(this.#sweeping, clocks.mono.now() + KEPT_SWEEP);
  }

  /** Ends those whose time is over, and those whose recall message would not be received. */
  #sweep(): void {
    const { inbox, timers } = this.#client;
    const mono = clocks.mono.now();
    const over: Keeping[] = [];
    for (const keeping of this.#kept) {
      const { hold, isOver, isIdle, until } = keeping;
      if (isOver) this.#kept.delete(keeping);
      else if (isIdle && (mono >= until || !inbox.hears(hold.name))) over.push(keeping);
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
    const over: Keeping[] = [];
    for (const keeping of this.#kept) {
      if (this.#kept.size <= this.learner.most) break;
      this.#kept.delete(keeping);
      if (keeping.isOver) continue;
      if (keeping.isIdle && keeping.since <= keeping.keptAt) over.push(keeping);
      else {
        keeping.keptAt = keeping.since;
        this.#kept.add(keeping);
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
    const all = [...this.#kept];
    this.#kept.clear();
    this.#end(all.filter(({ isIdle }) => isIdle));
  }

  #end(all: readonly Keeping[]): void {
    const begun = new Set<LockKind>();
    for (const [kind, batch] of batches(all, kindOf)) {
      void this.#release(kind, batch, !begun.has(kind));
      begun.add(kind);
    }
  }

  async #release(kind: LockKind, batch: readonly Keeping[], isFirst: boolean): Promise<void> {
    const releases = batch.map((keeping) => keeping.takeLeave());
    let answers: readonly ReleaseAnswer[] = [];
    let failure: unknown;
    try {
      const holds = batch.map(({ hold }) => hold);
      answers = (await kind.releaseAll?.(holds, isFirst)) ?? [];
    } catch (error) {
      // No caller waits for it; they are withdrawn until Redis answers.
      failure = error;
    }
    for (const [i, release] of releases.entries()) {
      const answer = answers[i];
      if (answer) release.answered(answer);
      else release.failed(failure);
    }
  }

  // ----

  /**
   * A cached lock is recalled. If the message was read late because the event loop was blocked,
   * other processes wait without any caller here knowing. Warns at most once a minute.
   */
  recalled(name: string): void {
    const mono = clocks.mono.now();
    const late = !isSet(this.#sweeping) ? 0 : mono - this.#sweeping.at;
    if (late < RECALL_LATE || mono - this.#warnedAt < WARN_AGAIN) return;
    this.#warnedAt = mono;
    warn(
      `Another process wanted ${quote(name)}, which this one had cached, and was answered up to ${duration(late)} late, ` +
        "because the event loop was blocked or the process was stopped: break up what blocks it, or do without `linger`.",
      "LOCK_RECALLED_LATE",
    );
  }
}

/** A hold that callers enter without a round trip. */
export interface UsedStay {
  readonly kind: LockKind;
  readonly hold: Hold | null;
  /** Does the hold own the lock? */
  readonly isOurs: boolean;
  /** The caller that is inside, or was last. */
  readonly last: SharedLease | null;
  /** Null: it was never without a caller. */
  readonly keeping: Keeping | null;
  /** Is it due to be renewed? Only `Stays` writes it. */
  isUsed: boolean;
  /** A renewal was answered. `by`: the caller that was inside, or last, when it was sent. */
  renewed(by: SharedLease, sent: Instant, answer: RenewAnswer, flag: HolderFlag | null): void;
}

/** A renewal under way. */
interface Asked {
  readonly stay: UsedStay;
  readonly last: SharedLease;
  readonly hold: Hold;
  readonly ttl: number;
  /** What it asks for. */
  readonly flag: HolderFlag | null;
}

/** What stays need of their client. */
interface Client {
  readonly timers: Timers;
  readonly inbox: {
    hears(name: string): boolean;
    channelOf(name: string): string;
    ready(channel: string): Promise<void>;
  };
  readonly commands: Transport;
  readonly window: number;
}

/** Clients of this process that cache locks, or did. */
const lingering = new Set<Stays>();

// The process ends, by `process.exit()` or an uncaught error: commands written here still leave it,
// so other processes need not wait for unused locks to expire.
atProcessEnd(() => {
  sendAtTurnEnd(() => {
    for (const stays of lingering) stays.endAll();
  });
});

const kindOf = ({ kind }: { readonly kind: LockKind }): LockKind => kind;
