import type { Party } from "../api/party.ts";
import type { Hold } from "../engine/lease/hold.ts";
import type { Renewal } from "../engine/lease/renewer.ts";
import type { Callback, Leavable, Meant } from "../engine/lock-kind.ts";
import { codes } from "../redis/codes.generated.ts";
import type { Commands } from "../redis/commands.ts";
import {
  decodeObserved,
  decodeProclaimed,
  decodeTermRenewal,
  type Observed,
} from "../redis/election-replies.ts";
import type { LockKeys } from "../redis/keys.ts";
import { electionLua as lua } from "../redis/lua.generated.ts";
import { publishProbe } from "../redis/messages.ts";
import { clientOf } from "../redis/party.ts";
import type { Replication } from "../redis/replication.ts";
import { isApart, type ReleaseAnswer, type RenewAnswer } from "../redis/replies.ts";
import type { Script } from "../redis/script.ts";
import { HandoffLock } from "./handoff.ts";

/** What a leader has said of itself last. Its number counts what was said in its term. */
interface Proclamation {
  readonly number: number;
  readonly value: string;
  isUnderWay: boolean;
}

interface Term {
  readonly id: string;
  readonly label: string;
  readonly name: string;
}

/** While a slot moves, a renewal of the lock alone must still be in time. */
const renewTerm: Script = { ...lua.renew, isImpatient: true };

/**
 * What is proclaimed stands so many leases longer than it was renewed for: it counts only while its
 * term lasts.
 */
const PROCLAIM_TTL_LEASES = 2;

/**
 * The lock whose holder is the leader of an election: a fair lock with keys of its own. It is never
 * passed on inside a process, nor kept there. Whatever ends a term tells its observers, behind the
 * answer of Redis: a message that comes before the end would make them ask too early. A crash tells
 * nobody.
 */
export class ElectionKind extends HandoffLock {
  override readonly label = "election";
  override readonly eventKind = "election";
  override readonly protocol = "election";
  /** A renewal is of one election: the keys of two may be at two servers. */
  override readonly batch = 1;
  readonly #clientId: string;
  /** By hold, of those that lead. */
  readonly #said = new Map<string, Proclamation>();

  constructor(commands: Commands, replication: Replication | null, window: number, clientId: string) {
    super(commands, replication, true, 0, window);
    this.#clientId = clientId;
  }

  protected override keysAt(name: string): LockKeys {
    return this.commands.keys.ofElection(name);
  }

  /** Where a client hears that something may have changed. */
  newsOf(name: string): string {
    return this.commands.keys.ofElection(name).news;
  }

  observe(name: string): Promise<Observed> {
    const { lock, leader } = this.commands.keys.ofElection(name);
    return this.commands.run(lua.observe, [lock, leader], [], decodeObserved);
  }

  /**
   * Says which client leads. `lease`: in ms. A rejection means that it may stand, and is said again
   * with the next renewal.
   */
  proclaim(term: Term, value: string, lease: number): Promise<"stands" | "gone" | "taken"> {
    const number = (this.#said.get(term.id)?.number ?? 0) + 1;
    const said = { number, value, isUnderWay: true };
    this.#said.set(term.id, said);
    return this.#say(term, said, lease);
  }

  async #say(
    { id, label, name }: Term,
    said: Proclamation,
    lease: number,
  ): Promise<"stands" | "gone" | "taken"> {
    const { lock, leader, news } = this.commands.keys.ofElection(name);
    const args = [id + label, said.number, this.#clientId, said.value, PROCLAIM_TTL_LEASES * lease, news];
    said.isUnderWay = true;
    try {
      return await this.commands.run(lua.proclaim, [lock, leader], args, decodeProclaimed);
    } finally {
      said.isUnderWay = false;
    }
  }

  override renew(terms: readonly Renewal[], timeout: number): Promise<RenewAnswer[]> {
    return Promise.all(terms.map((term) => this.#renew(term, timeout)));
  }

  async #renew(term: Renewal, timeout: number): Promise<RenewAnswer> {
    const { id, label, name, ttl } = term;
    const { lock, leader } = this.commands.keys.ofElection(name);
    try {
      const args = [id + label, ttl, PROCLAIM_TTL_LEASES * ttl];
      const { answer, number } = await this.commands.run(
        renewTerm,
        [lock, leader],
        args,
        decodeTermRenewal,
        timeout,
      );
      const said = this.#said.get(id);
      // It was deleted, or lost with its command: nobody would learn which client leads until the
      // next proclamation.
      if (answer.is === "renewed" && said && !said.isUnderWay && number < said.number)
        this.#say(term, said, ttl).catch(() => {});
      return answer;
    } catch (error) {
      if (!isApart(error)) throw error;
      const [answer] = await super.renew([term], timeout);
      if (!answer) throw error;
      return answer;
    }
  }

  override release(hold: Hold, callback: Callback<ReleaseAnswer>): void {
    this.#said.delete(hold.id);
    super.release(hold, {
      answered: (answer) => {
        callback.answered(answer);
        this.#tellEnd(hold.name);
      },
      // It is withdrawn then, until Redis has answered to that.
      failed: (error) => callback.failed(error),
    });
  }

  override async withdraw(hold: Leavable & { readonly token?: number }): Promise<unknown> {
    this.#said.delete(hold.id);
    const answer = await super.withdraw(hold);
    // One that led has proclaimed itself, whatever became of it. One that has only waited was seen by nobody.
    if (answer === codes.RELEASED || (hold.token ?? 0) > 0) this.#tellEnd(hold.name);
    return answer;
  }

  override async forceRelease(name: string, label: string | null, meant: Meant): Promise<number> {
    const ended = await super.forceRelease(name, label, meant);
    if (ended > 0) this.#tellEnd(name);
    return ended;
  }

  /** `leader()` and observers show the id of the leader's client; `list()` shows that of its hold. */
  protected override isOf(holder: Party, id: string): boolean {
    return holder.id === id || clientOf(holder) === id;
  }

  /** Those that it does not reach look again when the answer that they have is over. */
  #tellEnd(name: string): void {
    const { lock, news } = this.commands.keys.ofElection(name);
    publishProbe(this.commands, news, `${CHANGED}${this.commands.keys.prefix}${lock}`).catch(() => {});
  }
}

/** How a message begins that says that something may have changed. */
export const CHANGED = "changed ";
