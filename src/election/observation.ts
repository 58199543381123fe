import type { Leader } from "../api/election.ts";
import { LockUnavailableError } from "../api/errors.ts";
import { backOff } from "../core/schedule.ts";
import {
  CLOCK_DRIFT,
  CLOCK_GRAIN,
  EXPIRY_JITTER,
  NEWS_REST,
  OBSERVE_EARLY,
  OBSERVE_LEAST,
  OBSERVE_PERIOD,
  OBSERVE_UNHEARD,
  RECHECK_SPREAD,
} from "../defaults.ts";
import { unavailable } from "../redis/replies.ts";
import type { LockManager } from "../runtime/lock-manager.ts";
import { clocks, type Instant, now } from "../util/clock.ts";
import { between } from "../util/random.ts";
import { CallTimer } from "../util/timers.ts";
import type { ElectionKind, Observed } from "../wires/election.ts";
import { News } from "./news.ts";

/** An observer. */
export interface Watcher {
  /** The shown leader may have changed. */
  told(): void;
  /** The observation has ended. */
  ended(error: Error | null): void;
}

/** A leader that Redis has reported, and until when that counts on both clocks. */
interface Seen {
  readonly leader: Leader;
  readonly until: Instant;
}

/**
 * One client's view of an election, shared by all its observers. Protects them from false leaders:
 * only Redis's answers count, and only until the term ends by them, counted from the sending of the
 * query. Messages, which any client may write and the network may lose, only say that it is time to
 * query.
 *
 * | state | true | leaves it by |
 * |---|---|---|
 * | unopened | no observer yet | the first `join` → asking |
 * | asking | one query is under way; `isDue`: something may have changed since it was sent | answer, failure → resting, or asking again |
 * | resting | the timer is set: to the end of what is shown, or to the next query | timer, message, gap → asking |
 * | over | the last observer has left | – |
 */
export class Observation {
  readonly #name: string;
  readonly #kind: ElectionKind;
  readonly #manager: LockManager;
  readonly #news: News;
  readonly #emptied: () => void;
  readonly #watchers = new Set<Watcher>();
  /** Undefined: unknown so far. Null: there is no leader, or none is known. */
  #seen: Seen | null | undefined;
  #state: "unopened" | "asking" | "resting" | "over" = "unopened";
  #isDue = false;
  /** A message has come since the last query. */
  #isTold = false;
  /** When to query next, and until when not to query without a message; on the monotonic clock. */
  #askAt = Number.POSITIVE_INFINITY;
  #restUntil = Number.NEGATIVE_INFINITY;
  #failures = 0;
  readonly #timer = new CallTimer(() => this.#rang());

  /** `emptied`: called when the last observer has left. */
  constructor(name: string, kind: ElectionKind, manager: LockManager, emptied: () => void) {
    this.#name = name;
    this.#kind = kind;
    this.#manager = manager;
    this.#emptied = emptied;
    this.#news = new News(kind.newsOf(name), name, manager, () => this.#hint());
  }

  /** Computed, not remembered: a process that was paused shows no leader whose time is over. */
  get shown(): Leader | null | undefined {
    const seen = this.#seen;
    if (!seen) return seen;
    return clocks.mono.now() < seen.until.mono && clocks.wall.now() < seen.until.wall ? seen.leader : null;
  }

  join(watcher: Watcher): void {
    this.#watchers.add(watcher);
    if (this.#state !== "unopened") return;
    // Counts as a waiting caller: the subscriber connection is restored for it, and the process
    // stays alive.
    this.#manager.waiting++;
    if (!this.#manager.isSweeping) this.#manager.sweepSoon();
    this.#ask();
  }

  leave(watcher: Watcher): void {
    if (!this.#watchers.delete(watcher) || this.#watchers.size > 0 || this.#state === "over") return;
    this.#state = "over";
    this.#manager.timers.clear(this.#timer);
    this.#news.close();
    if (--this.#manager.waiting === 0 && !this.#manager.isSweeping) this.#manager.sweepSoon();
    this.#emptied();
  }

  /** For all of them. */
  end(error: Error | null): void {
    for (const watcher of [...this.#watchers]) watcher.ended(error);
  }

  /**
   * The connection is back. RACE: it may lead to another server, with another leader or none, so
   * the former one's answer no longer counts.
   */
  reconnected(): void {
    if (this.#seen) this.#seen = null;
    this.#tell();
    this.missed();
  }

  /** The connection is closed for good. */
  disconnected(): void {
    this.end(new LockUnavailableError(this.#name, "", this.#manager.commands.trouble(), "Election"));
  }

  /** The subscription is back, and messages may have been missed. */
  missed(): void {
    this.#news.again();
    this.#isTold = true;
    this.#restUntil = Number.NEGATIVE_INFINITY;
    this.#look();
  }

  #hint(): void {
    this.#isTold = true;
    this.#look();
  }

  /**
   * Queries, or does so again after the answer under way. RACE: that query may have run before the
   * change that the message reports.
   */
  #look(): void {
    if (this.#state === "asking") this.#isDue = true;
    else if (this.#state === "resting") this.#restFor(Math.min(this.#askAt, this.#restUntil));
  }

  #ask(): void {
    const { commands } = this.#manager;
    this.#state = "asking";
    this.#isDue = false;
    this.#askAt = Number.POSITIVE_INFINITY;
    // Subscribe, then query: a change after the answer brings a message, or is found by the query
    // that follows the acknowledgement.
    this.#news.listen();
    const wasTold = this.#isTold;
    this.#isTold = false;
    // Queries would only pile up. `reconnected` is called when the connection is back.
    if (commands.isAway && !commands.ended) {
      this.#failed(null);
      return;
    }
    const sent = now();
    this.#kind.observe(this.#name).then(
      (answer) => this.#answered(answer, sent, wasTold),
      (error: unknown) => this.#failed(error),
    );
    this.#arm();
  }

  #answered({ leader, isLed, ttl }: Observed, sent: Instant, wasTold: boolean): void {
    if (this.#state !== "asking") return;
    const before = this.#seen;
    const span = ttl * (1 - CLOCK_DRIFT) - CLOCK_GRAIN;
    this.#seen = leader && { leader, until: { mono: sent.mono + span, wall: sent.wall + span } };
    this.#failures = 0;
    const { token, value } = before?.leader ?? {};
    const isNew = token !== leader?.token || value !== leader?.value;
    this.#restUntil = isNew ? Number.NEGATIVE_INFINITY : sent.mono + NEWS_REST;
    // A new leader was published, but no message came: test the subscription.
    if (isNew && leader && before !== undefined && !wasTold && !this.#isDue) this.#news.test();
    this.#tell();
    const next = this.#nextAt(sent.mono, leader !== null, isLed, ttl, span);
    this.#restFor(this.#isDue ? Math.max(this.#restUntil, sent.mono) : next);
  }

  /**
   * When to query again. A leader renews its term in time, so a query before its end shows no gap.
   */
  #nextAt(sent: number, isKnown: boolean, isLed: boolean, ttl: number, span: number): number {
    const often = !this.#news.isHeard || (isLed && !isKnown);
    const period = often ? OBSERVE_UNHEARD : OBSERVE_PERIOD;
    const at = sent + period * between(1 - RECHECK_SPREAD, 1 + RECHECK_SPREAD);
    if (!isLed) return at;
    // After the end of a crashed leader's term, at a random time: all observers know the same end.
    if (span < OBSERVE_LEAST) return Math.min(at, sent + ttl + between(0, EXPIRY_JITTER));
    return Math.min(at, sent + span * between(OBSERVE_EARLY.from, OBSERVE_EARLY.to));
  }

  /** `error` null: there is no connection. Which client leads is unknown. */
  #failed(error: unknown): void {
    if (this.#state !== "asking") return;
    const { commands, events } = this.#manager;
    this.#seen = null;
    if (commands.ended) {
      this.disconnected();
      return;
    }
    if (error && this.#failures === 0)
      events.report(unavailable(this.#name, "its leader could not be read this time", error, "Election"));
    const pause = backOff(this.#failures++);
    this.#tell();
    this.#restFor(clocks.mono.now() + pause);
  }

  #restFor(at: number): void {
    if (this.#state === "over" || this.#state === "unopened") return;
    this.#state = "resting";
    this.#askAt = at;
    if (at <= clocks.mono.now()) this.#ask();
    else this.#arm();
  }

  /** Sets the timer to the end of what is shown, or to the next query. */
  #arm(): void {
    if (this.#state === "over") return;
    // RACE: when a process continues after a pause, a message may come before the timer of the end
    // of what is shown. That timer is replaced here, and the answer may take long.
    if (this.#seen && !this.shown) this.#tell();
    const end = this.shown ? (this.#seen?.until.mono ?? Number.POSITIVE_INFINITY) : Number.POSITIVE_INFINITY;
    this.#manager.timers.set(this.#timer, Math.min(end, this.#askAt));
  }

  #rang(): void {
    this.#tell();
    if (this.#state === "resting" && this.#askAt <= clocks.mono.now()) this.#ask();
    else this.#arm();
  }

  #tell(): void {
    for (const watcher of [...this.#watchers]) watcher.told();
  }
}
