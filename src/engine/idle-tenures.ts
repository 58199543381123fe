import { HEAR_AGAIN, KEPT_SWEEP, RECALL_LATE, STAY_RENEWAL, STAY_WINDOW } from "../defaults.ts";
import { sendAtTurnEnd } from "../redis/late.ts";
import type { HolderFlag, ReleaseAnswer, RenewAnswer } from "../redis/replies.ts";
import type { Transport } from "../redis/transport.ts";
import { clocks, type Instant, now } from "../util/clock.ts";
import { duration } from "../util/duration.ts";
import { atProcessEnd, isEnding } from "../util/process-end.ts";
import { quote } from "../util/quote.ts";
import { CallTimer, type Timers } from "../util/timers.ts";
import type { Cleanup } from "./cleanup.ts";
import type { GrantInbox } from "./grant-inbox.ts";
import type { Hold } from "./lease/hold.ts";
import type { Terms } from "./lease/terms.ts";
import type { LockKind } from "./lock-kind.ts";
import { ttlFor } from "./policies/fits.ts";
import { atTurnEnd } from "./turn.ts";

/**
 * The tenures of a client into which callers come without asking, and those in which nobody is.
 * Protects the next caller of each from waiting for Redis, because what Redis has said last is
 * hardly ever too old; and other processes from locks that nobody uses here any more.
 */
export class IdleTenures {
  /** The longest that one is renewed for, in ms. */
  readonly window: number;
  #isClosed = false;
  readonly #client: Client;
  /** In which a caller has come without asking since their last renewal was sent. */
  #used: UsedTenure[] = [];
  readonly #renewing = new CallTimer(() => this.#renewUsed());
  /** Those that go on, or end, when the event loop has turned. */
  #resting: UsedTenure[] = [];
  /** Those that have been idle, whether or not they are now; the one that was kept first comes first. */
  readonly #kept = new Set<KeptTenure>();
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

  /** A caller comes into this tenure, and nobody was asked. */
  used(tenure: UsedTenure): void {
    if (tenure.isUsed) return;
    tenure.isUsed = true;
    this.#used.push(tenure);
    if (this.#renewing.index < 0) this.#client.timers.set(this.#renewing, clocks.mono.now() + STAY_RENEWAL);
  }

  // ---- after a turn of the event loop

  /** The next caller comes then. */
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
    // Not one that was leaving, and is kept by now.
    for (const tenure of this.#resting.splice(0))
      if (!tenure.isOver && tenure.state !== "idle") tenure.resume();
    if (this.#kept.size === 0) lingering.delete(this);
  };

  // ---- renewals

  /**
   * Those that are used are renewed before what is known of them is too old. Long bodies need none:
   * the watchdog renews those.
   */
  #renewUsed(): void {
    const { mono } = now();
    const due: UsedTenure[] = [];
    const used = this.#used;
    this.#used = [];
    for (const tenure of used) {
      if (tenure.isOver) continue;
      // Half of the time at the most: it is due at the next look.
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
      const { id, label, name, record } = hold;
      const ttl = Math.min(ttlFor(terms, this.window), this.window);
      const flag = inbox.hears(name) ? (terms.linger > 0 ? 2 : 1) : null;
      hold.asks(ttl, sent.mono);
      tenure.asks(sent.mono);
      tenure.isUsed = false;
      digits.push(flag);
      return { id, label, name, ttl, record, flag } as const;
    });
    try {
      const answers = await kindOf(tenures).renew(renewals, this.window / 3);
      for (const [i, tenure] of tenures.entries()) {
        const answer = answers[i];
        if (answer) tenure.renewed(tenure.hold, sent, answer, digits[i] ?? null);
      }
    } catch {
      // Does anybody wait? Nobody has said so, and callers here do not go on for long without it. The
      // hold ends by its deadline.
      const at = clocks.mono.now();
      for (const { hold } of tenures) hold.want(at);
      this.#end(tenures.filter(({ state }) => state === "idle"));
    }
  }

  // ---- with nobody inside

  /** Nobody is inside any more. */
  keep(tenure: KeptTenure): void {
    // Also one that was leaving before, and was never idle.
    if (this.#kept.has(tenure)) return;
    lingering.add(this);
    this.#kept.add(tenure);
    if (this.#kept.size > this.#client.linger.most) this.#makeRoom();
    if (this.#sweeping.index < 0) this.#client.timers.set(this.#sweeping, clocks.mono.now() + KEPT_SWEEP);
  }

  /** Redis does not know yet that this process is to be told of waiters. */
  tell(tenure: UsedTenure): void {
    void this.#renew([tenure]);
  }

  /** Those whose time is over; and where no message could tell that somebody waits. */
  #sweep(): void {
    const { inbox, timers } = this.#client;
    const mono = clocks.mono.now();
    const over: KeptTenure[] = [];
    for (const tenure of this.#kept) {
      const { hold, keeping, isOver, state } = tenure;
      if (isOver) this.#kept.delete(tenure);
      else if (state !== "idle") continue;
      else if (mono >= (keeping?.until ?? 0) || !inbox.hears(hold.name)) over.push(tenure);
      // Thousands are mostly not taken again soon: the names of their keys take more than all the
      // rest of them.
      else hold.record = null;
    }
    this.#end(over);
    if (this.#kept.size > 0) timers.set(this.#sweeping, mono + KEPT_SWEEP);
    else lingering.delete(this);
  }

  /**
   * The ones that were not used for the longest time, roughly: one that was used goes to the end of
   * the line once.
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

  /** No further one may linger. */
  close(): void {
    this.#isClosed = true;
    this.endAll();
    lingering.delete(this);
  }

  /** All of them: what tells of waiters is lost, or the client ends. */
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
      // Nobody waits for it; they are left until Redis answers.
    }
    for (const [i, tenure] of tenures.entries())
      tenure.leaveAnswered(answers[i] ?? null, commands.epoch !== epoch);
    cleanup.releases--;
    if (cleanup.isEnding) cleanup.look();
  }

  // ----

  /**
   * A kept lock is recalled. Was that read late, because the event loop stood still? Then other
   * processes wait for it, and nobody here would know. Told once a minute.
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

/** How a tenure stays with its process while nobody is inside. */
export interface Keeping {
  /** Since when nobody is, and until when that may last, on the monotonic clock. 0: never yet. */
  since: number;
  until: number;
  /** `since`, when it was last put at the end of the line of those that are kept. */
  keptAt: number;
  /** How often it was taken again; and what that has saved, in pairs of commands. */
  uses: number;
  saved: number;
}

export const newKeeping = (): Keeping => ({ since: 0, until: 0, keptAt: 0, uses: 0, saved: 0 });

/** A tenure that may stay with nobody inside. */
export interface KeptTenure {
  readonly hold: Hold;
  readonly kind: LockKind;
  readonly state: "inside" | "idle" | "leaving" | "ended";
  readonly isOver: boolean;
  readonly keeping: Keeping | null;
  /** It ends, and nobody is inside. Its release is sent from outside. */
  takeLeave(): void;
  /** That was answered; null: it was not. */
  leaveAnswered(answer: ReleaseAnswer | null, isBroken: boolean): void;
}

/** A tenure into which callers come without asking. */
export interface UsedTenure extends KeptTenure {
  /** What the caller that was inside last has asked for. */
  readonly terms: Terms;
  /** Has one come so since the last renewal was sent, which was then? */
  isUsed: boolean;
  readonly sentAt: number;
  /** A renewal is sent. */
  asks(at: number): void;
  /** It was answered. `told`: what it asked for. */
  renewed(hold: Hold, sent: Instant, answer: RenewAnswer, flag: HolderFlag | null): void;
  /** The event loop has turned: the next caller may come, or there is none. */
  resume(): void;
}

/** What they need of their client. */
interface Client {
  readonly timers: Timers;
  readonly inbox: GrantInbox;
  readonly commands: Transport;
  readonly cleanup: Cleanup;
  readonly linger: { readonly most: number };
  readonly window: number;
}

const MINUTE = 60_000;

/** Clients of this process that keep locks, or did. */
const lingering = new Set<IdleTenures>();

// The process ends, by `process.exit()` or an error that nobody caught: what is written here still
// leaves it, and other processes need not wait for the end of locks that nobody uses.
atProcessEnd(() => {
  sendAtTurnEnd(() => {
    for (const idle of lingering) idle.endAll();
  });
});

function kindOf([tenure]: readonly KeptTenure[]): LockKind {
  if (!tenure) throw new TypeError("no tenures");
  return tenure.kind;
}

/** Those of one kind, as many as one command takes. */
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
