import type { ConnectionListener } from "../redis/transport.ts";
import type { LockManager } from "../runtime/lock-manager.ts";
import { pause } from "../util/abort.ts";
import type { ElectionKind } from "../wires/election.ts";
import { Observation } from "./observation.ts";

/** The elections of one client: what its observers share, and when they must query again. */
export class Elections implements ConnectionListener {
  readonly kind: ElectionKind;
  readonly manager: LockManager;
  /** The lease of a term when its election names none, in ms. */
  readonly leaseTime: number;
  readonly #observations = new Map<string, Observation>();
  /** Functions that end the pauses of candidates that will campaign again. */
  readonly #pauses = new Set<() => void>();

  constructor(kind: ElectionKind, manager: LockManager, leaseTime: number) {
    this.kind = kind;
    this.manager = manager;
    this.leaseTime = leaseTime;
    manager.listeners.add(this);
  }

  reconnected(): void {
    for (const one of this.#all) one.reconnected();
    for (const { kind, name } of this.manager.resources()) if (kind === this.kind) this.listen(name);
  }

  disconnected(): void {
    for (const one of this.#all) one.disconnected();
  }

  missed(): void {
    for (const one of this.#all) one.missed();
  }

  /**
   * Subscribes for a leader's forced end of term. Not awaited; if it fails, the next renewal
   * reports the end. One SUBSCRIBE for a client, in Cluster one for each slot.
   */
  listen(name: string): void {
    const { inbox, isClosed } = this.manager;
    if (!isClosed && !inbox.hears(name)) inbox.ready(inbox.channelOf(name)).catch(() => {});
  }

  /** This client's view of an election, for one more observer. Null: the client is closed. */
  observation(name: string): Observation | null {
    if (this.manager.isClosed) return null;
    const known = this.#observations.get(name);
    if (known) return known;
    const made = new Observation(name, this.kind, this.manager, () => this.#observations.delete(name));
    this.#observations.set(name, made);
    return made;
  }

  /**
   * Waits before the next campaign. Once the client is closed it does not wait: the campaign then
   * rejects.
   */
  async pause(ms: number, signal: AbortSignal | undefined): Promise<void> {
    // RACE: a body that close() has ended may take its time, and its pause would begin after that.
    if (!this.manager.isClosed) await pause(ms, signal, this.#pauses);
  }

  /** The client is closed. */
  close(): void {
    this.manager.listeners.delete(this);
    for (const end of this.#pauses) end();
    for (const one of this.#all) one.end(null);
  }

  /** A copy: what they learn may end some of them. */
  get #all(): Observation[] {
    return [...this.#observations.values()];
  }
}
