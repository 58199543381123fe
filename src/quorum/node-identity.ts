/** Which server answers at which node of a quorum: two connections to one server would be two votes of one. By run id. */
export type Registry = Map<string, Identity>;

/** The process that answers on the present connection. It has been this node since `upSince` at the latest, on our monotonic clock. */
interface Process {
  readonly runId: string;
  readonly upSince: number;
}

/** INFO tells the uptime as the difference of two clocks that are cut to whole seconds: it can be 1 s less. */
const UPTIME_GRAIN = 1_000;

/**
 * Which process a node is, as far as is known: a vote counts when that has been up for longer than any lease.
 *
 * | state | true | its vote |
 * |---|---|---|
 * | unknown | it has not introduced itself on the present connection | none |
 * | young | its process may have been up for less than `restartDelay` | none: it may have forgotten a lock that is held |
 * | old | its process has been up for longer than any lease | counts |
 */
export class Identity {
  readonly #node: number;
  readonly #restartDelay: number;
  readonly #registry: Registry;
  /** The process on this connection, and the one that introduced itself last. */
  #process: Process | null = null;
  #last: Process | null = null;
  #twin: number | null = null;

  /** `node`: its number. `restartDelay`: ms. */
  constructor(node: number, restartDelay: number, registry: Registry) {
    this.#node = node;
    this.#restartDelay = restartDelay;
    this.#registry = registry;
  }

  /** Has it introduced itself on the present connection? */
  get isKnown(): boolean {
    return this.#process !== null;
  }

  /** Has it ever introduced itself? */
  get wasKnown(): boolean {
    return this.#last !== null;
  }

  /** The number of the node that is the same server, as far as it has said; null: none is. */
  get twin(): number | null {
    return this.#twin;
  }

  /** Why it does not vote although it answers; null: it votes, or has not introduced itself. */
  get youth(): Error | null {
    if (!this.#process || this.#restartDelay === 0) return null;
    const age = performance.now() - this.#process.upSince;
    if (age >= this.#restartDelay) return null;
    const [past, ahead] = [Math.max(0, age), this.#restartDelay - age].map((ms) => Math.ceil(ms / 1_000));
    return new Error(`node ${this.#node} restarted ${past} s ago and votes again in ${ahead} s`);
  }

  /** It has introduced itself; `uptime` in s. */
  introduced(runId: string, uptime: number): void {
    const now = performance.now();
    const known = this.#registry.get(runId);
    // Two nodes may change their addresses: a process is that of the node which it answers as now.
    this.#twin = known && known !== this && known.#process ? known.#node : null;
    if (this.#twin !== null) return;
    // RACE: it was this node, then another one, and comes back. A node that says that it is still that other one is its twin:
    // so it must be recorded here again. And what was voted on here meanwhile it may never have heard of: it is new.
    if (known === this) {
      // What its clock has done meanwhile changes nothing.
      this.#process = this.#last;
      return;
    }
    if (this.#last && this.#registry.get(this.#last.runId) === this) this.#registry.delete(this.#last.runId);
    this.#registry.set(runId, this);
    // RACE: another process answers here than before. How long it has been up says nothing: the server's wall clock may have
    // been stepped forward, or the address may be that of an older process, which has never heard of what was voted on
    // here. When that changed nobody knows: we may have been silent for long. So it is new from now on.
    const isNew = this.#last !== null || known !== undefined;
    this.#process = { runId, upSince: isNew ? now : now - uptime * 1_000 + UPTIME_GRAIN };
    this.#last = this.#process;
  }

  /** The connection is lost. */
  lost(): void {
    this.#process = null;
    this.#twin = null;
  }
}
