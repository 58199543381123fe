import type { RedisArgument } from "../api/redis.ts";
import { isReplyError, type Link } from "../redis/driver.ts";
import { type Fields, whole } from "../redis/fields.ts";
import type { QuorumKeys } from "../redis/keys.ts";
import { decodeRelease, decodeRenewal, type ReleaseAnswer, type RenewAnswer } from "../redis/replies.ts";
import type { Script } from "../redis/script.ts";
import { ScriptRunner } from "../redis/script-runner.ts";
import { clocks } from "../util/clock.ts";
import { quorumLua as lua } from "./lua.generated.ts";
import type { QuorumSettings } from "./options.ts";

/** Given up with the connection: on the next one a process may answer that has lost all data. */
const acquire: Script = { ...lua.acquire, isBound: true };
const join: Script = { ...lua.join, isBound: true };
const agree: Script = { ...lua.agree, isBound: true };
const introduce: Script = { ...lua.introduce, isBound: true };

/**
 * One node's answer when it is asked to take a hold. `at` is its own time in µs, which is never
 * compared with another node's.
 */
export type Vote =
  | { readonly is: "owner"; readonly at: number; readonly token: number }
  | { readonly is: "held"; readonly at: number; readonly ttl: number; readonly holder: string }
  | { readonly is: "stale"; readonly at: number };

/** One node's answer to the token that results from the majority's votes. */
export type Agreement = "agreed" | "late" | "gone" | "taken";

/** The holder of a lock at one node. `holder` is null when the lock is free there. */
export interface Holding {
  readonly holder: string | null;
  readonly token: number;
  readonly ttl: number;
}

/** Identifies a hold at nodes. */
export interface NodeHold {
  readonly keys: QuorumKeys;
  readonly id: string;
}

/**
 * What a hold asks a node for. `token`: the proposed one; `passes`: how many after it are reserved.
 */
export interface Wish {
  readonly lease: number;
  readonly token: number;
  readonly passes: number;
}

export type NodeSettings = Pick<QuorumSettings, "replyTimeout" | "prefix" | "nodeTimeout" | "restartDelay">;

/**
 * The scripts of the quorum lock at one node as typed calls. Protects callers from a node that
 * hangs: it knows how long the node has answered nothing. Every error names its node. Times in ms.
 * `last`: the last token of a hold, with its local hand-offs.
 */
export class NodeCommands {
  readonly commands: ScriptRunner;
  /** Since when commands have been unanswered without any reply. */
  protected askedSince: number | null = null;

  /** `number`: counted from 1, for people. */
  constructor(
    readonly number: number,
    readonly link: Link,
    protected readonly settings: NodeSettings,
  ) {
    this.commands = new ScriptRunner(link, settings.replyTimeout, settings.prefix);
  }

  protected acquire(hold: NodeHold, { lease, token, passes }: Wish): Promise<Vote> {
    return this.#take(acquire, hold, lease, token, passes);
  }

  /**
   * Asks the node to take a hold that a majority has granted. Sent before this returns, so that
   * nothing is sent after the hold may have ended.
   */
  join(hold: NodeHold, ttl: number, token: number, last: number): Promise<Vote> {
    return this.#take(join, hold, ttl, token, last);
  }

  #take(script: Script, { keys, id }: NodeHold, ttl: number, ...tokens: number[]): Promise<Vote> {
    const timeout = Math.min(this.settings.nodeTimeout, ttl);
    const decode = this.commands.timed(keys.clock, decodeVote);
    const notAfter = this.commands.notAfter(keys.clock, timeout);
    return this.#run(script, keys, [id, ttl, ...tokens, notAfter], decode, timeout);
  }

  /** Stores the token that results from the majority's votes. */
  async agree({ keys, id }: NodeHold, token: number, last: number): Promise<Agreement> {
    return this.#run(agree, keys, [id, token, last], decodeAgreement, this.settings.nodeTimeout);
  }

  /**
   * Also for a young process, or after a resend: its answer that it has the key, and for how long,
   * is always true.
   */
  renew({ keys, id }: NodeHold, ttl: number, timeout: number): Promise<RenewAnswer> {
    return this.#run(lua.renew, keys, [id, ttl], decodeRenewal, timeout);
  }

  /** `wakes`: notifies waiters. `last`: 0 for a hold without a token. */
  async release({ keys, id }: NodeHold, wakes: boolean, last: number): Promise<ReleaseAnswer> {
    const { epoch } = this.commands;
    const channel = wakes ? channelAt(this, keys.free) : "";
    const answer = await this.#run(lua.release, keys, [id, channel, last], decodeRelease);
    // A copy of our own command ran, and the connection broke before its reply came: unless the
    // node had voted, only that copy can have given it the hold's last token.
    const isOwnCopy =
      answer.is === "gone" && this.commands.epoch !== epoch && last > 0 && answer.clock >= last;
    return isOwnCopy ? { ...answer, is: "released" } : answer;
  }

  inspect({ keys }: NodeHold): Promise<Holding> {
    return this.#run(lua.inspect, keys, [], decodeHolding);
  }

  /** Which process answers on this connection, and for how many whole seconds it has been up. */
  protected askIdentity(keys: QuorumKeys): Promise<{ uptime: number; runId: string }> {
    const { nodeTimeout, replyTimeout } = this.settings;
    // Reads its time too: even the first vote must not run after its caller has given up.
    const decode = this.commands.timed(keys.clock, decodeIntroduction);
    const timeout = this.link.state === "ready" ? nodeTimeout : replyTimeout;
    return this.#run(introduce, keys, [channelAt(this, keys.free)], decode, timeout);
  }

  /** For how many ms the node has answered no command. */
  protected get silence(): number {
    return this.askedSince === null ? 0 : clocks.mono.now() - this.askedSince;
  }

  /** Why nothing can be sent to the node now. */
  trouble(): Error {
    const { whereabouts, lastError } = this.commands.troubles;
    return this.error(`its connection is lost (${whereabouts})`, lastError);
  }

  protected error(what: string, cause?: unknown): Error {
    return new Error(`node ${this.number}: ${what}`, cause === undefined ? undefined : { cause });
  }

  #run<T>(
    script: Script,
    { lock, clock }: QuorumKeys,
    args: RedisArgument[],
    decode: (reply: unknown) => T,
    timeout?: number,
  ): Promise<T> {
    this.askedSince ??= clocks.mono.now();
    return this.commands.run(script, [lock, clock], args, decode, timeout).then(
      (answer) => {
        this.askedSince = null;
        return answer;
      },
      (error: unknown) => {
        // a refusal ends a silence too
        if (isReplyError(error)) this.askedSince = null;
        else if (this.commands.isAway) throw this.trouble();
        throw this.error(error instanceof Error ? error.message : String(error), error);
      },
    );
  }
}

/** Channels are data: each connection's own prefix is added here. */
export const channelAt = ({ commands }: NodeCommands, channel: string): string =>
  commands.keys.prefix + channel;

const decodeVote = (reply: unknown): Vote => whole(reply, readVote);

function readVote(from: Fields): Vote {
  const [is, at] = [from.next(), from.number()];
  switch (is) {
    case "owner":
      return { is, at, token: from.number() };
    case "held":
      return { is, at, ttl: from.ttl(), holder: from.text() };
    case "stale":
      return { is, at };
  }
  throw from.unexpected();
}

const decodeAgreement = (reply: unknown): Agreement => whole(reply, (from) => from.one(AGREEMENTS));

const AGREEMENTS: ReadonlyMap<unknown, Agreement> = new Map(
  (["agreed", "late", "gone", "taken"] as const).map((word) => [word, word]),
);

const decodeHolding = (reply: unknown): Holding =>
  whole(reply, (from) => ({ holder: from.text() || null, token: from.number(), ttl: from.ttl() }));

const decodeIntroduction = (reply: unknown) =>
  whole(reply, (from) => ({ uptime: from.number(), runId: from.text(), at: from.number() }));
