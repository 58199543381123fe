import { isRefusal, unavailable } from "../redis/replies.ts";
import type { LockManager } from "../runtime/lock-manager.ts";
import { CHANGED } from "../wires/election.ts";

/**
 * The news channel of an election, on the client's one subscriber connection. Its messages say only
 * that something may have changed. Protects the client's locks too: a refused channel is not
 * subscribed to again together with theirs.
 */
export class News {
  readonly #channel: string;
  readonly #name: string;
  readonly #manager: LockManager;
  readonly #told: () => void;
  #unlisten: (() => void) | null = null;
  #isAsking = false;
  #isRefused = false;
  #isClosed = false;

  /** `told`: called when something may have changed. */
  constructor(channel: string, name: string, manager: LockManager, told: () => void) {
    this.#channel = channel;
    this.#name = name;
    this.#manager = manager;
    this.#told = told;
  }

  /** Is every message received from now on? */
  get isHeard(): boolean {
    return this.#unlisten !== null && this.#manager.inbox.subscriptions.isReady(this.#channel);
  }

  /**
   * Subscribes, unless that is done or under way. Calls `told` when the subscription is
   * acknowledged: a message may have been missed before.
   */
  listen(): void {
    if (this.isHeard || this.#isAsking || this.#isRefused || this.#isClosed) return;
    const { subscriptions } = this.#manager.inbox;
    this.#unlisten ??= subscriptions.listen(this.#channel, (text) => {
      if (text.startsWith(CHANGED)) this.#told();
    });
    this.#isAsking = true;
    subscriptions.ready(this.#channel).then(
      () => this.#heard(),
      (error: unknown) => this.#failed(error),
    );
  }

  /** The connection is a new one, which may allow what was refused. */
  again(): void {
    this.#isRefused = false;
  }

  /** A message seems to have been missed. */
  test(): void {
    if (this.isHeard) void this.#manager.inbox.subscriptions.selfTest(this.#channel);
  }

  close(): void {
    this.#isClosed = true;
    this.#unlisten?.();
    this.#unlisten = null;
  }

  #heard(): void {
    this.#isAsking = false;
    if (!this.#isClosed) this.#told();
  }

  /** Until the subscription is acknowledged, observers query more often, and try it each time. */
  #failed(error: unknown): void {
    this.#isAsking = false;
    if (this.#isClosed || !isRefusal(error)) return;
    this.#isRefused = true;
    this.#unlisten?.();
    this.#unlisten = null;
    const what = "its messages cannot be received, so its leader is queried once a second";
    this.#manager.events.report(unavailable(this.#name, what, error, "Election"));
  }
}
