import type { Recalled } from "../api/lock.ts";
import type { Hold } from "../core/lease/hold.ts";
import type { AttemptOptions, Callback, LockKind } from "../core/lock-kind.ts";
import type { Expecting } from "../core/port.ts";
import { GRANT_WINDOW } from "../defaults.ts";
import type { AttemptAnswer } from "../redis/replies.ts";
import { within } from "../util/abort.ts";
import type { Context } from "./context.ts";

/**
 * Asks the client that may cache a lock to give it up, for a caller that does not want the lock
 * itself. It queues with a hold that is withdrawn as soon as it is granted the lock; the grant
 * shows that the lock was given up.
 */
export class RecallRequest implements AttemptOptions, Callback<AttemptAnswer>, Expecting {
  readonly mode = "queue";
  readonly lease = GRANT_WINDOW;
  readonly entryTtl = 0;
  readonly passes = 0;
  readonly reserves = 0;
  readonly after = null;
  readonly flag = 0;
  readonly run = null;
  readonly channel: AttemptOptions["channel"];
  readonly nonce: string;
  readonly meant: number | null;
  readonly hold: Hold;
  readonly #kind: LockKind;
  readonly #context: Context;
  #is: Recalled = "silent";
  /** Called for the command's answer, and for the holder's. */
  #sent: (error?: unknown) => void = () => {};
  #ended: () => void = () => {};

  constructor(kind: LockKind, name: string, context: Context, nonce: string, meant: number | null) {
    this.nonce = nonce;
    this.meant = meant;
    this.#kind = kind;
    this.#context = context;
    const { subscriptions, channelOf } = context.inbox;
    const own = channelOf(name);
    const isHeard = subscriptions.isReady(own);
    this.channel = { name: own, isHeard, counted: isHeard && subscriptions.isCounted(own) };
    this.hold = context.newHold(kind, name, this);
    this.hold.asks(this.lease);
  }

  async answer(wait: number): Promise<Recalled> {
    const { inbox } = this.#context;
    inbox.asked.set(this.nonce, () => this.#end("busy"));
    const ended = new Promise<void>((resolve) => {
      this.#ended = resolve;
    });
    try {
      await new Promise<void>((resolve, reject) => {
        this.#sent = (error) => (error === undefined ? resolve() : reject(error));
        this.#kind.attempt(this);
      });
      await within(ended, wait);
    } finally {
      inbox.asked.delete(this.nonce);
      // RACE: the grant may be on its way, or this command's outcome is unknown. Once withdrawn,
      // the lock goes on to the next waiter; a grant that is read after this is withdrawn once more
      // (R3).
      this.#context.leave(this.#kind, this.hold);
    }
    return this.#is;
  }

  answered(answer: AttemptAnswer): void {
    // Became free a moment ago: the holder meant has ended by itself.
    if (answer.is === "owner") this.#end(this.meant === null ? "released" : "free");
    // Not queued: another caller has it by now.
    else if (answer.is === "held" && answer.position === null) this.#end("busy");
    else if (answer.is !== "held") this.#end("silent");
    this.#sent();
  }

  failed(error: unknown): void {
    this.#sent(error ?? new Error("no answer"));
  }

  granted(): void {
    this.#end("released");
  }

  revoked(): void {
    this.#end("released");
  }

  /** It is left as soon as it is granted. */
  recalled(): void {}

  #end(is: Recalled): void {
    this.#is = is;
    this.#ended();
  }
}
