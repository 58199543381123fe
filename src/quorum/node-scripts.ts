import { quorumLua as lua } from "../redis/lua.generated.ts";
import {
  decodeRelease,
  decodeRenewal,
  fields,
  oneOf,
  type ReleaseAnswer,
  type RenewAnswer,
  ttl,
} from "../redis/replies.ts";
import type { Script, ScriptRunner } from "../redis/script-runner.ts";

/** They write down a hold where it was not. */
const acquire: Script = { ...lua.acquire, isBound: true };
const join: Script = { ...lua.join, isBound: true };

/** What one node says to an attempt. `at` is its own time in µs, which nobody compares with another node's. */
export type Vote =
  | { readonly is: "owner"; readonly at: number; readonly token: number; readonly ttl: number }
  | { readonly is: "held"; readonly at: number; readonly ttl: number; readonly holder: string }
  | { readonly is: "stale"; readonly at: number };

/** What one node says to the token that the majority's votes lead to. */
export type Agreement = "agreed" | "late" | "gone" | "taken";

/** The holder of a lock at one node. `holder` is null when nobody does. */
export interface Holding {
  readonly holder: string | null;
  readonly token: number;
  readonly ttl: number;
}

/** Which process answers on a connection, and for how many whole seconds it has been up. `at`: its time in µs. */
export interface Introduction {
  readonly at: number;
  readonly uptime: number;
  readonly runId: string;
}

/** The scripts of the quorum lock at one node as typed calls. `timeout` in ms. */
export class QuorumScripts {
  readonly #commands: ScriptRunner;

  constructor(commands: ScriptRunner) {
    this.#commands = commands;
  }

  /** `token`: the one proposed; `passes`: how many after it are reserved. */
  acquire(
    name: string,
    hold: string,
    { lease, token, passes }: { lease: number; token: number; passes: number },
    timeout: number,
  ): Promise<Vote> {
    const { lock, clock } = this.#keys(name);
    const request = `${lease} ${token} ${passes} ${this.#commands.notAfter(clock, timeout)}`;
    const decode = this.#commands.timed(clock, decodeVote);
    return this.#commands.run(acquire, [lock, clock], [hold, request], decode, timeout);
  }

  /** For a hold that a majority has granted. `last`: the last token of its passes. */
  join(
    name: string,
    hold: string,
    { ttl, token, last }: { ttl: number; token: number; last: number },
    timeout: number,
  ): Promise<Vote> {
    const { lock, clock } = this.#keys(name);
    const request = `${ttl} ${token} ${last} ${this.#commands.notAfter(clock, timeout)}`;
    const decode = this.#commands.timed(clock, decodeVote);
    return this.#commands.run(join, [lock, clock], [hold, request], decode, timeout);
  }

  /** Stores the token that the majority's votes lead to. */
  agree(name: string, hold: string, token: number, passes: number, timeout: number): Promise<Agreement> {
    const { lock, clock } = this.#keys(name);
    return this.#commands.run(
      lua.agree,
      [lock, clock],
      [hold, token, token + passes],
      decodeAgreement,
      timeout,
    );
  }

  renew(name: string, hold: string, ttl: number, timeout: number): Promise<RenewAnswer> {
    return this.#commands.run(lua.renew, [this.#keys(name).lock], [hold, ttl], decodeRenewal, timeout);
  }

  /** `wakes`: tells waiters. `last`: the last token of the hold, with its passes; 0: it has none. */
  release(name: string, hold: string, wakes: boolean, last: number): Promise<ReleaseAnswer> {
    const { lock, clock } = this.#keys(name);
    const channel = wakes ? this.#commands.keys.quorumChannel(name) : "";
    return this.#commands.run(lua.release, [lock, clock], [hold, channel, last], decodeRelease);
  }

  inspect(name: string): Promise<Holding> {
    return this.#commands.run(lua.inspect, [this.#keys(name).lock], [], decodeHolding);
  }

  introduce(name: string, timeout: number): Promise<Introduction> {
    const { lock, clock } = this.#keys(name);
    const channel = this.#commands.keys.quorumChannel(name);
    // Its time too: the first vote already must not be executed when nobody waits for it any more.
    const decode = this.#commands.timed(clock, decodeIntroduction);
    return this.#commands.run(lua.introduce, [lock, clock], [channel], decode, timeout);
  }

  #keys(name: string) {
    return this.#commands.keys.ofQuorum(name);
  }
}

function decodeVote(reply: unknown): Vote {
  const [word, at, first, second] = fields(reply);
  const is = oneOf(word, "owner", "held", "stale");
  if (is === "owner") return { is, at: Number(at), token: Number(first), ttl: ttl(second) };
  if (is === "held") return { is, at: Number(at), ttl: ttl(first), holder: String(second) };
  return { is, at: Number(at) };
}

const decodeAgreement = (reply: unknown) => oneOf(fields(reply)[0], "agreed", "late", "gone", "taken");

function decodeHolding(reply: unknown): Holding {
  const [holder, token, left] = fields(reply);
  return { holder: holder === "" ? null : String(holder), token: Number(token), ttl: ttl(left) };
}

function decodeIntroduction(reply: unknown): Introduction {
  const [uptime, runId, at] = fields(reply);
  return { uptime: Number(uptime), runId: String(runId), at: Number(at) };
}
