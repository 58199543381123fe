import type { Answer, Args, Procedure } from "../redis/codec.ts";
import { isReplyError, type Link } from "../redis/driver.ts";
import { unexpected } from "../redis/fields.ts";
import type { QuorumKeys } from "../redis/keys.ts";
import type { ReleaseAnswer, RenewAnswer } from "../redis/replies.ts";
import { ScriptRunner } from "../redis/script-runner.ts";
import { clocks } from "../util/clock.ts";
import { quorumLua as lua } from "./lua.generated.ts";
import type { QuorumSettings } from "./options.ts";

/** Given up with the connection: on the next one a process may answer that has lost all data. */
const acquire = { ...lua.acquire, isBound: true as const };
const join = { ...lua.join, isBound: true as const };
const agree = { ...lua.agree, isBound: true as const };
const introduce = { ...lua.introduce, isBound: true as const };

/**
 * One node's answer when it is asked to take a hold. `at` is its own time in µs, which is never
 * compared with another node's.
 */
export type Vote = Answer<typeof lua.acquire.form.replies>;

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

  protected acquire({ keys, id: hold }: NodeHold, { lease, token, passes }: Wish): Promise<Vote> {
    const { timeout, notAfter } = this.#limits(keys, lease);
    return this.#run(acquire, keys, { hold, lease, token, passes, notAfter }, timeout);
  }

  /**
   * Asks the node to take a hold that a majority has granted. Sent before this returns, so that
   * nothing is sent after the hold may have ended.
   */
  join({ keys, id: hold }: NodeHold, ttl: number, token: number, last: number): Promise<Vote> {
    const { timeout, notAfter } = this.#limits(keys, ttl);
    return this.#run(join, keys, { hold, ttl, token, last, notAfter }, timeout);
  }

  #limits({ clock }: QuorumKeys, ttl: number): { readonly timeout: number; readonly notAfter: number } {
    const timeout = Math.min(this.settings.nodeTimeout, ttl);
    return { timeout, notAfter: this.commands.notAfter(clock, timeout) };
  }

  /** Stores the token that results from the majority's votes. */
  async agree({ keys, id }: NodeHold, token: number, last: number): Promise<Agreement> {
    const answer = await this.#run(agree, keys, { hold: id, token, last }, this.settings.nodeTimeout);
    // RACE: as in `read`: a small number alone may be the reply to another command.
    if (answer.token !== token) throw unexpected(answer);
    const { is } = answer;
    return is === "owner" ? "agreed" : is === "stale" ? "late" : is;
  }

  /**
   * Also for a young process, or after a resend: its answer that it has the key, and for how long,
   * is always true.
   */
  renew({ keys, id }: NodeHold, ttl: number, timeout: number): Promise<RenewAnswer> {
    return this.#run(lua.renew, keys, { hold: id, ttl }, timeout);
  }

  /** `wakes`: notifies waiters. `last`: 0 for a hold without a token. */
  async release({ keys, id }: NodeHold, wakes: boolean, last: number): Promise<ReleaseAnswer> {
    const { epoch } = this.commands;
    const channel = wakes ? channelAt(this, keys.free) : "";
    const answer = await this.#run(lua.release, keys, { hold: id, channel, last });
    // A copy of our own command ran, and the connection broke before its reply came: unless the
    // node had voted, only that copy can have given it the hold's last token.
    const isOwnCopy =
      answer.is === "gone" && this.commands.epoch !== epoch && last > 0 && (answer.clock ?? 0) >= last;
    return isOwnCopy ? { ...answer, is: "released" } : answer;
  }

  async inspect({ keys }: NodeHold): Promise<Holding> {
    const { hold, token, remaining } = await this.#run(lua.inspect, keys, {});
    return { holder: hold || null, token, ttl: remaining };
  }

  /** Which process answers on this connection, and for how many whole seconds it has been up. */
  protected askIdentity(keys: QuorumKeys): Promise<{ uptime: number; runId: string }> {
    const { nodeTimeout, replyTimeout } = this.settings;
    const timeout = this.link.state === "ready" ? nodeTimeout : replyTimeout;
    // Tells its time too: even the first vote must not run after its caller has given up.
    return this.#run(introduce, keys, { channel: channelAt(this, keys.free) }, timeout);
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

  #run<P extends Procedure>(
    script: P,
    { lock, clock }: QuorumKeys,
    args: Args<P>,
    timeout?: number,
  ): Promise<Answer<P["form"]["replies"]>> {
    this.askedSince ??= clocks.mono.now();
    return this.commands.run(script, [lock, clock], args, timeout).then(
      (answer) => {
        this.askedSince = null;
        if ("at" in answer) this.commands.tellTime(clock, answer.at as number);
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
