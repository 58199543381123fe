import type { Hold } from "../core/lease/hold.ts";
import type { Renewal } from "../core/lease/renewer.ts";
import type { Ask, Callback, Leavable } from "../core/lock-kind.ts";
import type { Sent } from "../redis/call.ts";
import { type Answer, ordered, read } from "../redis/codec.ts";
import { codes } from "../redis/codes.generated.ts";
import type { Commands } from "../redis/commands.ts";
import { unexpected } from "../redis/fields.ts";
import type { LockKeys } from "../redis/keys.ts";
import { rememberLua as lua } from "../redis/lua.generated.ts";
import type { Replication } from "../redis/replication.ts";
import {
  type AttemptAnswer,
  attemptOf,
  type Kept,
  type ReleaseAnswer,
  type RenewAnswer,
  type Result,
} from "../redis/replies.ts";
import { micros } from "../redis/statement.ts";
import { clocks } from "../util/clock.ts";
import { HandoffKind } from "./handoff.ts";
import { entryPrefix, NEVER } from "./hold-scripts.ts";

/** What the script that stores a result answers. */
type Finished = Answer<typeof lua.finish.form.replies>;

/** What is known of a hold whose end may store a result. */
export interface RunState {
  /**
   * The last answer that it owns the lock: at that server's time in µs, to a command that was sent then
   * on the monotonic clock, and with that lease. `at` 0: no answer has said so.
   */
  at: number;
  sent: number;
  ttl: number;
  /** The first run that one of its commands has named as waited for. 0: none has. */
  seen: number;
  /** What its end stores. Null: nothing, because its body has not ended with a value. */
  finish: { readonly result: Result; readonly keep: number; readonly token: number } | null;
  /** What it has stored. Null: no answer has said so. */
  kept: Kept | null;
  /** A newer run has its result stored, or runs: this one was not. */
  isRefused: boolean;
  /** Resolves with null when enough replicas have what it has stored, or with why they have not. */
  replicated: Promise<unknown> | null;
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
  readonly #runs = new WeakMap<object, RunState>();
  /** Holds whose result is on the way to Redis, by id. */
  readonly #finishing = new Set<string>();
  readonly #replication: Replication | null;

  constructor(commands: Commands, replication: Replication | null, window: number) {
    super(commands, replication, false, 0, window);
    this.#replication = replication;
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
    const run = this.runOf(hold);
    run.sent = clocks.mono.now();
    run.ttl = lease;
    // RACE: a late copy of an earlier command must not accept a result that the last one has not: it
    // would end the run under its body. So no command names a later run, whichever callers have left.
    if (run.seen === 0 || (seen > 0 && seen < run.seen)) run.seen = seen;
    const keys = this.#takeKeys(hold.name);
    const owner = hold.id + hold.label;
    const entry = mode === "queue" ? entryPrefix(ask, this.window, "", "0") : hold.entry;
    const args = ordered(lua.take, {
      hold: owner,
      lease,
      notAfter: commands.notAfter(keys) * 1_000 || NEVER,
      entry,
      seen: run.seen === 0 ? "" : micros(run.seen),
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
    if (answer.is === "kept") return { is: "kept", at, kept: keptOf(answer.result, answer.rest, reply) };
    const attempt = attemptOf(answer, call.callback);
    if (attempt.is === "owner") this.runOf(call.callback.hold).at = at;
    if (answer.is === "held" && attempt.is === "held") return { ...attempt, token: answer.token };
    return attempt;
  };

  /** It changes with each renewal. */
  runOf(hold: object): RunState {
    let run = this.#runs.get(hold);
    if (!run) {
      const none = { finish: null, kept: null, isRefused: false, replicated: null };
      run = { at: 0, sent: Number.NEGATIVE_INFINITY, ttl: 0, seen: 0, ...none };
      this.#runs.set(hold, run);
    }
    return run;
  }

  /** From now on the end of this hold stores a result: at the latest in so many ms, if it is lost. */
  finishes(hold: Hold, result: Result, keep: number): void {
    const run = this.runOf(hold);
    run.finish = { result, keep, token: hold.token };
    // It is withdrawn for as long as its result counts.
    hold.asks(Math.max(0, lateUntil(run) - clocks.mono.now()));
  }

  /** Its end needs no result: its body has thrown, or no caller waits for its value any more. */
  override async withdraw(hold: Leavable): Promise<{ readonly is: "released" | "gone" }> {
    // RACE: the command that stores its result had no answer. Its hold must not end without it.
    if (!this.#runs.get(hold)?.finish) {
      // RACE: its grant's message is read while its result is on the way: it is tried again later.
      if (this.#finishing.has(hold.id)) throw new Error("its result is being stored");
      return super.withdraw(hold);
    }
    const { is } = await this.finish(hold);
    return { is: is === "released" ? is : "gone" };
  }

  override release(hold: Hold, callback: Callback<ReleaseAnswer>): void {
    if (!this.runOf(hold).finish) super.release(hold, callback);
    else
      this.finish(hold).then(
        (answer) => callback.answered(answer),
        (error: unknown) => callback.failed(error),
      );
  }

  /** @throws Error: the result may be stored, or not. */
  async finish(hold: Leavable): Promise<ReleaseAnswer> {
    const run = this.runOf(hold);
    const { finish } = run;
    if (!finish) throw new TypeError("no result is known");
    const { lock, queue, clients, clock, result, last } = this.commands.keys.ofRemembered(hold.name);
    const { token, keep } = finish;
    const { state, fingerprint, json } = finish.result;
    // RACE: the server's clock was set back, and would count it for longer.
    const late = run.at > 0 && clocks.mono.now() < lateUntil(run) ? micros(run.at + LATE * 1_000) : "";
    const args = {
      hold: hold.id + (hold.label ?? ""),
      token: micros(token),
      keep,
      state,
      fingerprint,
      json,
      late,
    };
    const write = (commands: Commands) =>
      commands.run(lua.finish, [lock, queue, clients, clock, result, last], args);
    this.#finishing.add(hold.id);
    const answer = await this.#sendTo(hold.name, lock, run, write).finally(() =>
      this.#finishing.delete(hold.id),
    );
    if (answer.is !== "released") {
      run.isRefused = true;
      return answer;
    }
    run.kept = { ...finish.result, token, at: answer.at, rest: keep };
    return { is: "released", kept: run.kept };
  }

  /** With replicas, their answer comes later, and holds nothing up. */
  #sendTo(
    name: string,
    key: string,
    run: RunState,
    write: (commands: Commands) => Promise<Finished>,
  ): Promise<Finished> {
    const replication = this.#replication;
    if (!replication) return write(this.commands);
    return new Promise((resolve, reject) => {
      const confirmed = replication.confirm(name, key, async (commands) => {
        const answer = await write(commands);
        resolve(answer);
        return { is: answer.is === "released" ? "renewed" : "gone", ttl: 0 };
      });
      run.replicated = confirmed.then(
        () => null,
        (error: unknown) => {
          reject(error);
          return error;
        },
      );
    });
  }

  /** What new callers get. Null: nothing. */
  async show(name: string): Promise<Kept | null> {
    const { result } = this.commands.keys.ofRemembered(name);
    const answer = await this.commands.run(lua.show, [result], {});
    return answer.is === "kept" ? keptOf(answer.result, answer.rest, answer) : null;
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
      const run = this.#runs.get(holds[i]?.hold ?? this);
      // RACE: after its deadline it may speak of a late copy of its first command, which has taken the
      // lock again. A newer run may have come and gone by then.
      if (!run || is !== "renewed" || at === 0 || clocks.mono.now() >= run.sent + run.ttl) return;
      run.at = at;
      run.sent = sent;
      run.ttl = ttl;
    });
    return answers;
  }
}

/** For so many ms after the last proof that the hold was the owner its result counts. */
const LATE = codes.LATE_RESULT;

/** The same on the monotonic clock. */
const lateUntil = ({ sent }: RunState): number => sent + LATE;

/** See lua/remember/result.lua. */
const FORM = /^1([vux]) (\d{16}) (\d{16}) \d{16} \d+ ([!-~]+) /;

/** `reply`: which says so. */
function keptOf(text: string, rest: number, reply: unknown): Kept {
  const [head = "", state, token, at, fingerprint = "-"] = FORM.exec(text) ?? [];
  if (state !== "v" && state !== "u" && state !== "x") throw unexpected(reply);
  return { state, token: Number(token), at: Number(at), fingerprint, json: text.slice(head.length), rest };
}
