import type { AttemptOptions, LockKind } from "../core/lock-kind.ts";
import type { GrantInbox } from "./grant-inbox.ts";

/**
 * How a process receives the messages of one lock: grants on the client's own channel, or messages
 * on a channel of the lock. Protects waiters from queueing, or sleeping, while no message could
 * reach them.
 */
export class LockChannel {
  /** Its name; null: the kind has no messages. */
  readonly name: string | null;
  readonly #wake: LockKind["wake"];
  readonly #inbox: GrantInbox;
  readonly #heard: (word: string) => void;
  /** Stops receiving its messages. Null: they are not received, or for the whole client. */
  unlisten: (() => void) | null = null;

  /** `heard`: called with each message that says that the lock may be free. */
  constructor({ wake }: LockKind, name: string, inbox: GrantInbox, heard: (word: string) => void) {
    this.#wake = wake;
    this.#inbox = inbox;
    this.#heard = heard;
    if (wake.by === "time") this.name = null;
    else this.name = wake.by === "message" ? wake.channel(name) : inbox.channelOf(name);
  }

  /** Is every message about this lock received from now on? True where there are no messages. */
  get isHeard(): boolean {
    const { name } = this;
    if (name === null) return true;
    if (this.#wake.by === "message" && !this.unlisten) return false;
    return this.#inbox.subscriptions.isReady(name);
  }

  /** The channel's present state: read once for each command. */
  look(): Seen {
    const { name, isHeard } = this;
    const { subscriptions } = this.#inbox;
    // Queue only while grants can be received. If subscribing keeps failing, queue anyway and find
    // the grant by re-checking: otherwise this client would never get the lock.
    const isQueued = this.#wake.by === "grant" && name !== null;
    const mayQueue = isQueued && (isHeard || this.#inbox.isUnheard(name));
    const counted = isQueued && isHeard && subscriptions.isCounted(name);
    return { name: name ?? "", isHeard, counted, mayQueue };
  }

  get mayQueue(): boolean {
    return this.look().mayQueue;
  }

  /** Resolves when every message about this lock is received. */
  ready(): Promise<void> {
    const { name } = this;
    if (name === null) return Promise.resolve();
    if (this.#wake.by === "grant") return this.#inbox.ready(name);
    this.unlisten ??= this.#inbox.subscriptions.listen(name, this.#heard);
    return this.#inbox.subscriptions.ready(name);
  }

  /** The same for callers that do not wait yet. */
  listen(): void {
    if (!this.isHeard) this.ready().catch(() => {});
  }

  /**
   * The same, after the command of callers that may wait: once for a client after a try, and each
   * time that they queue.
   */
  prepare(mode: "try" | "queue"): void {
    const { name } = this;
    if (mode === "queue") this.listen();
    else if (this.#wake.by === "grant" && name !== null) this.#inbox.prepare(name);
  }

  /** A message for this client was missed: does it receive any? */
  selfTest(): void {
    const { name } = this;
    if (name !== null) void this.#inbox.subscriptions.selfTest(name);
  }
}

/**
 * A channel in the form that a command names; `mayQueue`: would a grant that comes by it be found?
 */
export type Seen = NonNullable<AttemptOptions["channel"]> & { readonly mayQueue: boolean };
