import type { GrantInbox } from "./grant-inbox.ts";
import type { Ask, LockKind } from "./lock-kind.ts";

/** A channel, as a command names it. */
export type Seen = NonNullable<Ask["channel"]>;

/**
 * How a process hears of one lock: grants on the client's own channel, or messages on a channel of the lock. Protects waiters
 * from queueing, or sleeping, where nothing could reach them.
 */
export class LockChannel {
  /** Its name; null: the kind has no messages. */
  readonly name: string | null;
  readonly #wake: LockKind["wake"];
  readonly #inbox: GrantInbox;
  readonly #heard: (word: string) => void;
  #unlisten: (() => void) | null = null;

  /** `heard`: told of each message that says that the lock may be free. */
  constructor({ wake }: LockKind, name: string, inbox: GrantInbox, heard: (word: string) => void) {
    this.#wake = wake;
    this.#inbox = inbox;
    this.#heard = heard;
    if (wake.by === "time") this.name = null;
    else this.name = wake.by === "message" ? wake.channel(name) : inbox.channelOf(name);
  }

  /** Is every message about this lock heard from now on? Where there are none, none is missed. */
  get isHeard(): boolean {
    const { name } = this;
    if (name === null) return true;
    if (this.#wake.by === "message" && !this.#unlisten) return false;
    return this.#inbox.subscriptions.isReady(name);
  }

  /**
   * Queue only while grants can be received. If subscribing keeps failing, queue anyway and find
   * the grant by re-checking: otherwise this client would never get the lock.
   */
  get mayQueue(): boolean {
    return this.mayQueueAt(this.look());
  }

  /** The same, of what was seen just now. */
  mayQueueAt({ isHeard }: Seen): boolean {
    const { name } = this;
    if (this.#wake.by !== "grant" || name === null) return false;
    return isHeard || this.#inbox.isUnheard(name);
  }

  /** What is true of it now: asked once for each command. */
  look(): Seen {
    const { name, isHeard } = this;
    const counted = isHeard && name !== null && this.#inbox.subscriptions.isCounted(name);
    return { name: name ?? "", isHeard, counted };
  }

  /** Resolves when every message about this lock is heard. */
  ready(): Promise<void> {
    const { name } = this;
    if (name === null) return Promise.resolve();
    if (this.#wake.by === "grant") return this.#inbox.ready(name);
    this.#unlisten ??= this.#inbox.subscriptions.listen(name, this.#heard);
    return this.#inbox.subscriptions.ready(name);
  }

  /** The same for callers that will wait, and do not yet. */
  listen(): void {
    if (!this.isHeard) this.ready().catch(() => {});
  }

  /** The same after the command of callers that may wait: once for a client after a try, and each time that they queue. */
  prepare(mode: "try" | "queue"): void {
    const { name } = this;
    if (mode === "queue") this.listen();
    else if (this.#wake.by === "grant" && name !== null) this.#inbox.prepare(name);
  }

  unlisten(): void {
    this.#unlisten?.();
    this.#unlisten = null;
  }

  /** A message of ours was missed: is this client heard at all? */
  selfTest(): void {
    const { name } = this;
    if (name !== null) void this.#inbox.subscriptions.selfTest(name);
  }
}
