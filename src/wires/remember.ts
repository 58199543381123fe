import type { Hold } from "../core/lease/hold.ts";
import type { Renewal } from "../core/lease/renewer.ts";
import type { Ask, Callback, Leavable } from "../core/lock-kind.ts";
import type { Sent } from "../redis/call.ts";
import { ordered, read } from "../redis/codec.ts";
import { codes } from "../redis/codes.generated.ts";
import type { Commands } from "../redis/commands.ts";
import type { LockKeys } from "../redis/keys.ts";
import { rememberLua as lua } from "../redis/lua.generated.ts";
import type { Replication } from "../redis/replication.ts";
import {
  type AttemptAnswer,
  attemptOf,
  type Kept,
  type ReleaseAnswer,
  type RenewAnswer,
} from "../redis/replies.ts";
import { micros } from "../redis/statement.ts";
import { clocks } from "../util/clock.ts";
import { HandoffKind } from "./handoff.ts";
import { entryPrefix, NEVER } from "./hold-scripts.ts";

/** What a run leaves. `state`: a value, undefined, or a value that could not be stored. */
export interface Result {
  readonly state: "v" | "u" | "x";
  readonly keep: number;
  readonly fingerprint: string;
  readonly json: string;
}

/** A run that has its result, and whose end Redis has not confirmed. */
export interface Finishing {
  readonly hold: Leavable & { readonly token: number };
  readonly result: Result;
  /**
   * Until when its result counts although its hold is over: the server's time in µs, and on the
   * monotonic clock.
   */
  readonly late: number;
  readonly until: number;
  /** When it was stored, the server's time in µs. 0: no answer has said so. */
  at: number;
  /** A newer run has its result stored, or runs: this one was not. */
  isRefused: boolean;
}

/** An answer that a hold owns the lock: at that server's time in µs, to a command that was sent then. */
export interface Proof {
  at: number;
  sent: number;
  ttl: number;
}

/**
 * The lock whose holder runs a body for all callers: a lock with its own keys, one place in the queue for
 * all callers of a process, and no local hand-offs, whose acquire also answers what is remembered, and
 * whose release stores it. Positions of arguments are defined only here
 * and in the headers under lua/remember.
 */
export class RememberKind extends HandoffKind {
  override readonly label = "remember";
  override readonly eventKind = "remember";
  override readonly protocol = "remember";
  override readonly hasStays = false;
  readonly asksTwice = true;
  readonly #finishing = new Map<string, Finishing>();
  /** The last one of each run that is under way. */
  readonly #proofs = new Map<string, Proof>();

  constructor(commands: Commands, replication: Replication | null, window: number) {
    super(commands, replication, false, 0, window);
  }

  protected override keysAt(name: string): LockKeys {
    return this.commands.keys.ofRemembered(name);
  }

  override attempt(ask: Ask): void {
    const { hold, mode, lease, seen = 0 } = ask;
    if (mode === "again") {
      super.attempt(ask);
      return;
    }
    const { commands } = this;
    this.#proofs.set(hold.id, { at: 0, sent: clocks.mono.now(), ttl: lease });
    const keys = this.#takeKeys(hold.name);
    const owner = hold.id + hold.label;
    const entry = mode === "queue" ? entryPrefix(ask, this.window, "", "0") : hold.entry;
    const args = ordered(lua.take, {
      hold: owner,
      lease,
      notAfter: commands.notAfter(keys) * 1_000 || NEVER,
      entry,
      seen: seen === 0 ? "" : micros(seen),
    });
    commands.send(this.checked(lua.take, lua.firstTake, keys, args), this.#taken, ask);
  }

  #takeKeys(name: string) {
    const { lock, queue, clients, clock, result } = this.commands.keys.ofRemembered(name);
    return this.commands.keysOf([lock, queue, clients, clock, result]);
  }

  readonly #taken = (reply: unknown, call: Sent<Ask>): AttemptAnswer => {
    const answer = read(lua.take.form.replies, reply);
    const { at } = answer;
    this.commands.tellTime(call.statement.keys, at);
    this.knownIn = call.epoch;
    if (answer.is === "kept") {
      const { token, rest, result: text } = answer;
      return { is: "kept", at, kept: { text, token, rest } };
    }
    const attempt = attemptOf(answer, call.callback);
    const { id } = call.callback.hold;
    const proof = this.#proofs.get(id);
    if (attempt.is === "owner" && proof) proof.at = at;
    else this.#proofs.delete(id);
    if (answer.is === "held" && attempt.is === "held") return { ...attempt, token: answer.token };
    return attempt;
  };

  /** What is known of a run that begins. It changes with each renewal. */
  proofOf({ id }: Hold): Proof {
    return this.#proofs.get(id) ?? { at: 0, sent: Number.NEGATIVE_INFINITY, ttl: 0 };
  }

  /** From now on the end of this hold stores a result. */
  finishes(hold: Hold, { at, sent }: Proof, result: Result): Finishing {
    const late = at === 0 ? 0 : at + codes.LATE_RESULT * 1_000;
    const finishing = { hold, result, late, until: sent + codes.LATE_RESULT, at: 0, isRefused: false };
    this.#finishing.set(hold.id, finishing);
    this.#proofs.delete(hold.id);
    return finishing;
  }

  /** Its end needs no result: its body has thrown, or no caller waits for its value any more. */
  override async withdraw(hold: Leavable): Promise<{ readonly is: "released" | "gone" }> {
    // RACE: the command that stores its result had no answer. Its hold must not end without it.
    const finishing = this.#finishing.get(hold.id);
    if (!finishing) {
      this.#proofs.delete(hold.id);
      return super.withdraw(hold);
    }
    const { is } = await this.finish(finishing);
    return { is: is === "released" ? is : "gone" };
  }

  override release(hold: Hold, callback: Callback<ReleaseAnswer>): void {
    const finishing = this.#finishing.get(hold.id);
    this.#proofs.delete(hold.id);
    if (!finishing) super.release(hold, callback);
    else
      this.finish(finishing).then(
        (answer) => callback.answered(answer),
        (error: unknown) => callback.failed(error),
      );
  }

  /** @throws Error: the result may be stored, or not. */
  async finish(finishing: Finishing): Promise<ReleaseAnswer> {
    const { hold, late } = finishing;
    const { lock, queue, clients, clock, result, last } = this.commands.keys.ofRemembered(hold.name);
    const { state, keep, fingerprint, json } = finishing.result;
    const answer = await this.commands.run(lua.finish, [lock, queue, clients, clock, result, last], {
      hold: hold.id + (hold.label ?? ""),
      token: micros(hold.token),
      keep,
      state,
      fingerprint,
      json,
      late: late === 0 ? "" : micros(late),
    });
    if (answer.is === "released") finishing.at = answer.at;
    else finishing.isRefused = true;
    this.#finishing.delete(hold.id);
    return { is: answer.is };
  }

  /** What new callers get. Null: nothing. */
  async show(name: string): Promise<(Kept & { readonly at: number }) | null> {
    const { result } = this.commands.keys.ofRemembered(name);
    const answer = await this.commands.run(lua.show, [result], {});
    if (answer.is !== "kept") return null;
    const { token, rest, result: text, at } = answer;
    return { text, token, rest, at };
  }

  /** Would new callers have got it? */
  async forget(name: string): Promise<boolean> {
    const { result } = this.commands.keys.ofRemembered(name);
    return (await this.commands.run(lua.forget, [result], {})).is === "kept";
  }

  override async renew(holds: readonly Renewal[], timeout: number): Promise<readonly RenewAnswer[]> {
    const sent = clocks.mono.now();
    const answers = await super.renew(holds, timeout);
    answers.forEach(({ is, at = 0, ttl }, i) => {
      const proof = this.#proofs.get(holds[i]?.hold.id ?? "");
      // RACE: after its deadline it may speak of a late copy of its first command, which has taken the
      // lock again. A newer run may have come and gone by then.
      if (!proof || is !== "renewed" || at === 0 || clocks.mono.now() >= proof.sent + proof.ttl) return;
      proof.at = at;
      proof.sent = sent;
      proof.ttl = ttl;
    });
    return answers;
  }
}
