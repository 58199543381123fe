import type { Inspected, Recalled } from "../api/lock.ts";
import type { Hold } from "../core/lease/hold.ts";
import type { LockKind, Meant } from "../core/lock-kind.ts";
import type { Port } from "../core/port.ts";
import { FIRST_REPLY, GRANT_WINDOW, KEEPER_REPLY } from "../defaults.ts";
import type { AttemptAnswer } from "../redis/replies.ts";
import { atMost, within } from "../util/abort.ts";
import { clocks } from "../util/clock.ts";
import { newNonce } from "../util/random.ts";

/**
 * Questions to other clients whose cached lock may be idle. Protects callers that do not want the
 * lock itself from mistaking an idle holder for one in use. Only the holder knows, so it is asked;
 * a holder that does not answer counts as busy.
 */
export class HolderQueries {
  readonly #owner: Owner;
  #aside: string | null = null;
  /** One question for each name: more would get the same answer. */
  readonly #recalls = new Map<string, Promise<Recalled>>();

  constructor(owner: Owner) {
    this.#owner = owner;
  }

  /** Does any client hold the lock with a caller inside? */
  async isLocked(kind: LockKind, name: string): Promise<boolean> {
    const seen = await holdersOf(kind, name);
    if (!seen.kept || !(await this.#isHeard(name, FIRST_REPLY))) return seen.held > 0;
    const is = await this.askHolders(kind, name, KEEPER_REPLY);
    return is === "busy" || is === "silent";
  }

  /**
   * Asks every possibly idle holder whether it is in use; none releases. "idle": all have answered
   * that they are. `wait`: ms for their answers. The client must be able to receive them.
   */
  async askHolders(kind: LockKind, name: string, wait: number): Promise<"free" | "idle" | "busy" | "silent"> {
    const { inbox } = this.#owner;
    const nonce = this.nonce();
    let [idle, held, isBusy] = [0, Number.POSITIVE_INFINITY, false];
    const answered = new Promise<void>((resolve) => {
      inbox.asked.set(nonce, (is) => {
        if (is === "idle") idle++;
        else isBusy = true;
        if (isBusy || idle >= held) resolve();
      });
    });
    try {
      const seen = await holdersOf(kind, name, nonce);
      if (!seen.kept) return seen.held > 0 ? "busy" : "free";
      held = seen.held;
      if (idle < held && !isBusy) await within(answered, wait);
    } finally {
      inbox.asked.delete(nonce);
    }
    if (isBusy) return "busy";
    return idle < held ? "silent" : "idle";
  }

  /**
   * Makes a holder that keeps the lock unused release it. `wait`: ms for its answer. Concurrent
   * calls share one question.
   */
  recall(kind: LockKind, name: string, wait: number): Promise<Recalled> {
    // A lock cached by readers is not a writer's: the answer differs.
    const key = `${kind.protocol}:${kind.mode ?? ""}:${name}`;
    let recall = this.#recalls.get(key);
    if (!recall) {
      recall = this.#recall(kind, name, wait).finally(() => this.#recalls.delete(key));
      this.#recalls.set(key, recall);
    }
    return recall;
  }

  /**
   * Was it given up for a caller that would otherwise force-release it? If others wait, the holder
   * has already been notified of them.
   */
  async recallIdle(kind: LockKind, name: string, { holder, token }: Meant): Promise<boolean> {
    if (!kind.answer && kind.mode !== "read") return false;
    const seen = await kind.inspect(name);
    const isMeant =
      (token === null || token === seen.token) && (holder === null || holder === seen.holder?.id);
    if (!isMeant || !seen.kept || seen.waiters?.length !== 0) return false;
    const meant = holder === null && token === null ? null : seen.token;
    return (await this.#queue(kind, name, seen, FIRST_REPLY, KEEPER_REPLY, meant)) === "released";
  }

  /** The nonce of questions whose answers are not awaited. */
  get noReplyNonce(): string {
    this.#aside ??= this.nonce();
    return this.#aside;
  }

  /** A nonce for one question of this client. */
  nonce(): string {
    return `${this.#owner.clientId}.${newNonce()}`;
  }

  async #recall(kind: LockKind, name: string, wait: number): Promise<Recalled> {
    const until = clocks.mono.now() + wait;
    const left = (): number => until - clocks.mono.now();
    const seen = await kind.inspect(name);
    if (kind.mode !== "read" || !seen.kept) return this.#queue(kind, name, seen, left(), left());
    if (!(await this.#isHeard(name, left()))) return "silent";
    // A place in the queue closes the shared hold to all readers: take none while a client does not
    // answer.
    const is = await this.askHolders(kind, name, left());
    return is === "idle" ? this.#queue(kind, name, seen, left(), Math.min(left(), KEEPER_REPLY)) : is;
  }

  /**
   * `hearing`: ms for the subscription. `wait`: ms for the answer. `meant`: the token of the only
   * holder to ask; null: any holder.
   */
  async #queue(
    kind: LockKind,
    name: string,
    { holder, kept }: Inspected,
    hearing: number,
    wait: number,
    meant: number | null = null,
  ): Promise<Recalled> {
    if (holder === null) return "free";
    if (!kept) return "busy";
    if (!(await this.#isHeard(name, hearing))) return "silent";
    // Readers release for a writer.
    const by = kind.mode === "read" ? (kind.sharing?.writers[0] ?? kind) : kind;
    return this.#request(by, name, wait, meant);
  }

  /**
   * Asks the client that may cache a lock to give it up, for a caller that does not want the lock
   * itself. It queues with a hold that is withdrawn as soon as it is granted the lock; the grant
   * shows that the lock was given up.
   */
  async #request(kind: LockKind, name: string, wait: number, meant: number | null): Promise<Recalled> {
    const { inbox } = this.#owner;
    const nonce = this.nonce();
    let is: Recalled = "silent";
    let over = (): void => {};
    const ended = new Promise<void>((resolve) => {
      over = resolve;
    });
    const end = (how: Recalled): void => {
      is = how;
      over();
    };
    const released = (): void => end("released");
    const channel = inbox.look(inbox.channelOf(name));
    const asker = { hold: null as Hold | null, granted: released, revoked: released, recalled: () => {} };
    const hold = this.#owner.newHold(kind, name, asker);
    asker.hold = hold;
    hold.asks(GRANT_WINDOW);
    inbox.asked.set(nonce, () => end("busy"));
    try {
      await new Promise<void>((resolve, reject) => {
        const answered = (answer: AttemptAnswer): void => {
          // Became free a moment ago: the holder meant has ended by itself.
          if (answer.is === "owner") end(meant === null ? "released" : "free");
          // Not queued: another caller has it by now.
          else if (answer.is === "held" && answer.position === null) end("busy");
          else if (answer.is !== "held") end("silent");
          resolve();
        };
        const failed = (error: unknown): void => reject(error ?? new Error("no answer"));
        kind.attempt({ ...REQUEST, hold, nonce, meant, channel, answered, failed });
      });
      await within(ended, wait);
    } finally {
      inbox.asked.delete(nonce);
      // RACE: the grant may be on its way, or this command's outcome is unknown. Once withdrawn,
      // the lock goes on to the next waiter; a grant that is read after this is withdrawn once more
      // (R3).
      this.#owner.leave(kind, hold);
    }
    return is;
  }

  /** Would an answer be received? */
  async #isHeard(name: string, within: number): Promise<boolean> {
    const { inbox, isClosed } = this.#owner;
    const { subscriptions } = inbox;
    const channel = inbox.channelOf(name);
    if (!subscriptions.isReady(channel) && !isClosed)
      await atMost(inbox.ready(channel), within).catch(() => {});
    return subscriptions.isReady(channel);
  }
}

interface Owner extends Port {
  readonly clientId: string;
  readonly isClosed: boolean;
}

/** How a lock is queued for by a caller that does not want it. */
const REQUEST = {
  mode: "queue",
  lease: GRANT_WINDOW,
  entryTtl: 0,
  passes: 0,
  reserves: 0,
  after: null,
  flag: 0,
  run: null,
} as const;

/**
 * How many holders there are, and whether all of them may be idle. `nonce`: they are then asked
 * with it.
 */
async function holdersOf(
  kind: LockKind,
  name: string,
  nonce?: string,
): Promise<{ readonly held: number; readonly kept: boolean }> {
  if (kind.mode === "read" && kind.sharing) {
    const { held, kept } = await kind.sharing.readersOf(name, nonce);
    return { held, kept: held > 0 && kept === held };
  }
  const { holder, kept } = await kind.inspect(name, nonce);
  return { held: holder === null ? 0 : 1, kept };
}
