import { ClientClosedError, LockUnavailableError } from "../api/errors.ts";
import type { Interval } from "../api/once.ts";
import { nounOf } from "../api/wording.ts";
import type { Hold } from "../core/lease/hold.ts";
import { refused } from "../core/lease/release-outcome.ts";
import { backOff } from "../core/schedule.ts";
import { FIRST_REPLY } from "../defaults.ts";
import type { Callback } from "../redis/call.ts";
import { foreignFormat, isRefusal, unavailable } from "../redis/replies.ts";
import type { LockManager } from "../runtime/lock-manager.ts";
import { type Abortable, pause } from "../util/abort.ts";
import { clocks, now } from "../util/clock.ts";
import type { BeginAnswer, OnceScripts } from "./once-scripts.ts";

/** Redis's final answer. */
export type Begun = Exclude<BeginAnswer, { readonly is: "stale" }>;

/** What it needs of its client. */
type Client = Pick<LockManager, "commands" | "cleanup" | "isClosed">;

/**
 * How one call gets its turn. It asks with one hold until Redis has answered, at most for as long
 * as a command may take. Protects the caller from a lost answer: if the turn was begun, the next
 * query with the same hold gets that answer, and the body runs once. A turn begun for a caller that
 * has gone is withdrawn.
 */
export class Beginning implements Abortable {
  readonly #scripts: OnceScripts;
  readonly #client: Client;
  readonly #hold: Hold;
  readonly #interval: Interval;
  /** Null: its caller has its answer, and waits no longer. */
  #told: Callback<Begun> | null;
  readonly #until: number;
  /** Redis may have begun the turn, or may still begin it, and no caller has it. */
  #isUnsure = false;
  /** When the unanswered query was sent, on the monotonic clock. Null: there is none. */
  #askedAt: number | null = null;
  /** When it asked first, on the monotonic clock. Null: no earlier query can begin a turn any more. */
  #since: number | null = null;
  /** How many queries were too late although they were first, or took an interval to be answered. */
  #late = 0;
  /** Functions that end its pause. */
  readonly #pauses = new Set<() => void>();

  constructor(
    scripts: OnceScripts,
    client: Client,
    hold: Hold,
    interval: Interval,
    callback: Callback<Begun>,
  ) {
    this.#scripts = scripts;
    this.#client = client;
    this.#hold = hold;
    this.#interval = interval;
    this.#told = callback;
    this.#until = clocks.mono.now() + client.commands.replyTimeout;
  }

  get name(): string {
    return this.#hold.name;
  }

  /** Is a query under way that Redis may have received? */
  get isUnderWay(): boolean {
    return this.#askedAt !== null && this.#client.commands.mayHaveReached(this.#askedAt);
  }

  /**
   * Its caller waits no longer. A query under way is awaited: only after it can the turn be
   * withdrawn.
   */
  aborted(reason: unknown): void {
    const told = this.#told;
    this.#told = null;
    // RACE: a client that is closed between two tries would be closed before the pause ends, with
    // the turn still begun.
    if (this.#askedAt === null) this.#takeBack();
    // Its timer would keep alive a process that has nothing else to do.
    for (const end of this.#pauses) end();
    told?.failed(reason);
  }

  /** Resolves when no command of it is under way any more. */
  async begin(): Promise<void> {
    try {
      const begun = await this.#answer();
      if (begun?.is === "ours") await this.#confirm();
      const told = this.#told;
      if (!begun || !told) return;
      this.#told = null;
      this.#isUnsure = false;
      told.answered(begun);
    } catch (error) {
      this.aborted(error);
    } finally {
      this.#takeBack();
    }
  }

  /** Withdraws a turn that Redis may have begun for no caller. */
  #takeBack(): void {
    if (!this.#isUnsure) return;
    this.#isUnsure = false;
    this.#client.cleanup.add(this.#scripts, this.#hold, this.#hold.mayLive);
  }

  /** Null: its caller waits no longer. */
  async #answer(): Promise<Begun | null> {
    const { commands } = this.#client;
    const { name } = this.#hold;
    let failure: unknown;
    for (let failures = 0; this.#told; failures++) {
      if (this.#client.isClosed) throw new ClientClosedError(name);
      // While the connection is away, queries would only pile up in it.
      if (!commands.isAway && !commands.ended) {
        try {
          const answer = await this.#ask(FIRST_REPLY * 2 ** failures);
          if (answer.is !== "stale") return answer;
          // RACE: a query that crosses the end of a slot begins no turn of the next one. Processes
          // call when a slot begins: one that paused now would have no turn.
          if (failures === 0) continue;
        } catch (error) {
          if (isFinal(error)) throw unavailable(name, UNKNOWN, error, nounOf(this.#scripts));
          this.#isUnsure = true;
          failure = error;
        }
      }
      if (clocks.mono.now() >= this.#until || commands.ended)
        throw unavailable(name, UNKNOWN, failure ?? commands.trouble(), nounOf(this.#scripts));
      const rest = Math.min(backOff(failures), this.#until - clocks.mono.now());
      // RACE: its caller may have gone while the query was unanswered.
      if (this.#told) await pause(rest, undefined, this.#pauses);
    }
    return null;
  }

  async #ask(timeout: number): Promise<BeginAnswer> {
    const hold = this.#hold;
    const { every, lease, onCrash } = this.#interval;
    const sent = now();
    const isFirst = this.#since === null;
    this.#since ??= sent.mono;
    // RACE: an earlier query may have begun a turn, and a copy of this one that the network delayed
    // must not begin another after that turn's end: it would be taken, and no process would run it. So
    // no copy of any query begins a turn after the interval of the first one. A turn that runs is told
    // also after that. If Redis takes longer to answer than an interval lasts, no query would be in
    // time.
    const end =
      this.#late < LATE
        ? this.#scripts.endOf(hold.name, this.#interval, this.#since)
        : Number.POSITIVE_INFINITY;
    hold.asks(onCrash === "keep" ? Math.max(lease, every) : lease, sent.mono);
    this.#askedAt = sent.mono;
    try {
      const within = Math.max(1, Math.min(timeout, this.#until - sent.mono));
      const answer = await this.#scripts.begin(hold, this.#interval, within, end);
      this.#isUnsure = answer.is === "ours";
      if (answer.is === "stale") {
        this.#since = null;
        if (isFirst || clocks.mono.now() - sent.mono >= every) this.#late++;
      }
      if (answer.is === "ours") hold.owned({ ...answer, token: answer.begin, waits: false }, sent);
      return answer;
    } finally {
      this.#askedAt = null;
    }
  }

  /** If replicas must have the turn, they have it before the body runs. */
  async #confirm(): Promise<void> {
    const hold = this.#hold;
    const sent = now();
    const answer = await this.#scripts.confirm(hold, hold.left()).catch((error: unknown) => {
      const refusal = refused(hold.name, error, this.#scripts);
      throw refusal?.() ?? new LockUnavailableError(hold.name, UNCONFIRMED, error, nounOf(this.#scripts));
    });
    if (answer?.is === "renewed") hold.renewed(sent, answer);
    const isLost = answer !== null && answer.is !== "renewed";
    if (isLost || hold.left() <= 0)
      throw new LockUnavailableError(hold.name, OUTRAN, undefined, nounOf(this.#scripts));
  }
}

/** With so many late queries an interval is too short: one may have crossed the end of a slot. */
const LATE = 2;

/** Would the same query always get this answer? Then nothing was done. */
const isFinal = (error: unknown): boolean =>
  isRefusal(error) ||
  foreignFormat(error) !== null ||
  // Redis 6.2 adds its own words before it.
  (error instanceof Error && /\bWRONGTYPE\b/.test(error.message));

const UNKNOWN = "Redis did not say whether this run may begin";
const UNCONFIRMED = "its replicas did not confirm that this run begins";
const OUTRAN = "the lease of this run was over before its body could begin";
