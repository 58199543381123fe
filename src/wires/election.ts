import type { Leader } from "../api/election.ts";
import type { Party } from "../api/party.ts";
import type { Hold } from "../core/lease/hold.ts";
import type { Named, Renewal } from "../core/lease/renewer.ts";
import type { Callback, Leavable, Meant } from "../core/lock-kind.ts";
import type { Commands } from "../redis/commands.ts";
import type { LockKeys } from "../redis/keys.ts";
import { electionLua as lua } from "../redis/lua.generated.ts";
import { publishProbe } from "../redis/messages.ts";
import { clientOf, leaderOf } from "../redis/party.ts";
import type { Replication } from "../redis/replication.ts";
import { isApart, type ReleaseAnswer, type RenewAnswer } from "../redis/replies.ts";
import { HandoffKind } from "./handoff.ts";

/**
 * What an observer receives. `ttl`: ms that the term lasts unless it is renewed; Infinity: it has
 * no end.
 */
export interface Observed {
  /** Null: there is no leader, or it has not proclaimed itself yet. */
  readonly leader: Leader | null;
  /** Is there a leader? */
  readonly isLed: boolean;
  readonly ttl: number;
}

/** A leader's latest value. `number` counts its proclamations in this term. */
interface Proclamation {
  readonly number: number;
  readonly value: string;
  isUnderWay: boolean;
}

/** While a slot moves, a renewal of the lock alone must still be in time. */
const renewTerm = { ...lua.renew, isImpatient: true as const };

/**
 * A proclamation stays this many leases longer than it was renewed for: it counts only while its
 * term lasts.
 */
const PROCLAIM_TTL_LEASES = 2;

/**
 * The lock whose holder is the leader of an election: a fair lock with its own keys, without local
 * hand-offs or caching. The end of a term is published to its observers after Redis's answer: a
 * message before the end would make them ask too early. A crash publishes nothing.
 */
export class ElectionKind extends HandoffKind {
  override readonly label = "election";
  override readonly eventKind = "election";
  override readonly protocol = "election";
  /** A renewal is for one election: the keys of two may be on two servers. */
  override readonly batch = 1;
  readonly #clientId: string;
  /** The proclamations of leaders, by hold. */
  readonly #said = new Map<string, Proclamation>();

  constructor(commands: Commands, replication: Replication | null, window: number, clientId: string) {
    super(commands, replication, true, 0, window);
    this.#clientId = clientId;
  }

  protected override keysAt(name: string): LockKeys {
    return this.commands.keys.ofElection(name);
  }

  /** The channel on which a client learns that something may have changed. */
  newsOf(name: string): string {
    return this.commands.keys.ofElection(name).news;
  }

  async observe(name: string): Promise<Observed> {
    const keys = this.commands.keys.ofElection(name);
    const { token, ttl, number, said, label } = await this.commands.run(
      lua.observe,
      [keys.lock, keys.leader],
      {},
    );
    if (token === 0) return { leader: null, isLed: false, ttl: 0 };
    const space = said.indexOf(" ");
    if (number === 0 || space < 0) return { leader: null, isLed: true, ttl };
    const leader = leaderOf(said.slice(0, space), label, token);
    return { leader: { ...leader, value: said.slice(space + 1), token }, isLed: true, ttl };
  }

  /**
   * Stores which client leads. `lease`: in ms. A rejection means that the value may be stored; the
   * next renewal stores it again.
   */
  proclaim(term: Named, value: string, lease: number): Promise<"stands" | "gone" | "taken"> {
    const number = (this.#said.get(term.id)?.number ?? 0) + 1;
    const said = { number, value, isUnderWay: true };
    this.#said.set(term.id, said);
    return this.#say(term, said, lease);
  }

  async #say(
    { id, label, name }: Named,
    said: Proclamation,
    lease: number,
  ): Promise<"stands" | "gone" | "taken"> {
    const { lock, leader, news } = this.commands.keys.ofElection(name);
    said.isUnderWay = true;
    try {
      const { is } = await this.commands.run(lua.proclaim, [lock, leader], {
        hold: id + label,
        number: said.number,
        client: this.#clientId,
        value: said.value,
        ttl: PROCLAIM_TTL_LEASES * lease,
        news,
      });
      return is === "owner" || is === "mine" ? "stands" : is;
    } finally {
      said.isUnderWay = false;
    }
  }

  override renew(terms: readonly Renewal[], timeout: number): Promise<readonly RenewAnswer[]> {
    return Promise.all(terms.map((term) => this.#renew(term, timeout)));
  }

  async #renew(term: Renewal, timeout: number): Promise<RenewAnswer> {
    const { hold, ttl } = term;
    const { id, label, name } = hold;
    const { lock, leader } = this.commands.keys.ofElection(name);
    try {
      const args = { hold: id + label, ttl, said: PROCLAIM_TTL_LEASES * ttl };
      const { number, ...answer } = await this.commands.run(renewTerm, [lock, leader], args, timeout);
      const said = this.#said.get(id);
      // It was deleted, or lost with its command. Without this, observers would not learn which
      // client leads until the next proclamation.
      if (answer.is === "renewed" && said && !said.isUnderWay && number < said.number)
        this.#say(hold, said, ttl).catch(() => {});
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
      // The hold is then withdrawn, until Redis has answered that.
      failed: (error) => callback.failed(error),
    });
  }

  override async withdraw(hold: Leavable & { readonly token?: number }): ReturnType<HandoffKind["withdraw"]> {
    this.#said.delete(hold.id);
    const answer = await super.withdraw(hold);
    // A hold that led has been proclaimed, whatever happened to it. No observer has seen a hold
    // that only waited.
    if (answer.is === "released" || (hold.token ?? 0) > 0) this.#tellEnd(hold.name);
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

  /** Observers that it does not reach query again when their last answer is over. */
  #tellEnd(name: string): void {
    const { lock, news } = this.commands.keys.ofElection(name);
    publishProbe(this.commands, news, `${CHANGED}${this.commands.keys.prefix}${lock}`).catch(() => {});
  }
}

/** The start of a message that says that something may have changed. */
export const CHANGED = "changed ";
