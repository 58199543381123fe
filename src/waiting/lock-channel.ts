import type { GrantInbox } from "./grant-inbox.ts";
import type { Ask, LockKind } from "./lock-kind.ts";

/**
 * How a process hears of one lock: grants on the client's own channel, or messages on a channel of the lock. Protects waiters
 * from queueing, or sleeping, where nothing could reach them.
 */
export class LockChannel {
  readonly #kind: LockKind;
  readonly #name: string;
  readonly #inbox: GrantInbox;
  readonly #heard: (word: string) => void;
  #channel: string | null = null;
  #unlisten: (() => void) | null = null;

  /** `heard`: told of each message that says that the lock may be free. */
  constructor(kind: LockKind, name: string, inbox: GrantInbox, heard: (word: string) => void) {
    this.#kind = kind;
    this.#name = name;
    this.#inbox = inbox;
    this.#heard = heard;
  }

  /** Its name; null: the kind has no messages. */
  get name(): string | null {
    const { wake } = this.#kind;
    if (wake.by === "time") return null;
    this.#channel ??= wake.by === "message" ? wake.channel(this.#name) : this.#inbox.channelOf(this.#name);
    return this.#channel;
  }

  /** Is every message about this lock heard from now on? Where there are none, none is missed. */
  get isHeard(): boolean {
    const { name } = this;
    if (name === null) return true;
    if (this.#kind.wake.by === "message" && !this.#unlisten) return false;
    return this.#inbox.subscriptions.isReady(name);
  }

  /**
   * Queue only while grants can be received. If subscribing keeps failing, queue anyway and find the grant by re-checking:
   * otherwise this client would never get the lock.
   */
  get mayQueue(): boolean {
    const { name } = this;
    return this.#kind.wake.by === "grant" && name !== null && (this.isHeard || this.#inbox.isUnheard(name));
  }

  /** Resolves when every message about this lock is heard. */
  ready(): Promise<void> {
    const { name } = this;
    if (name === null) return Promise.resolve();
    if (this.#kind.wake.by === "grant") return this.#inbox.ready(name);
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
    else if (this.#kind.wake.by === "grant" && name !== null) this.#inbox.prepare(name);
  }

  unlisten(): void {
    this.#unlisten?.();
    this.#unlisten = null;
  }

  /** Where grants are heard; null while they are not, or, `always`, where they will be. */
  told(always: boolean): Ask["channel"] {
    const { name } = this;
    return this.#kind.wake.by === "grant" && name !== null ? this.#inbox.told(name, always) : null;
  }

  /** A message of ours was missed: is this client heard at all? */
  selfTest(): void {
    const { name } = this;
    if (name !== null) void this.#inbox.subscriptions.selfTest(name);
  }
}
