import { LockWantedError } from "../api/errors.ts";
import type { Transport } from "../redis/transport.ts";
import { now } from "../util/clock.ts";
import { detached } from "../util/detached.ts";
import type { GrantInbox } from "./grant-inbox.ts";
import type { Hold } from "./lease/hold.ts";
import type { SharedLease } from "./lease/shared-lease.ts";
import type { LockKind } from "./lock-kind.ts";
import type { Waiter } from "./waiter.ts";

// Leases whose holders asked to be told (`lease.wanted`) when another caller waits for the lock.

/** What it needs of its client. */
interface Client {
  readonly inbox: GrantInbox;
  readonly commands: Transport;
  /** The callers of this client at a lock, by whatever kind of its protocol. */
  waitersOf(kind: { readonly protocol: string }, name: string): Iterable<Waiter>;
}

/**
 * Leases whose holders want to know when somebody waits. Protects all others from paying for that:
 * before the first such holder asks nothing is made, subscribed or sent, and of a lease that has
 * ended nothing is left.
 */
export class WantedLeases {
  /** Those that are held and that nobody is known to wait for, by the lock's name: one at a time holds it. */
  readonly leases = new Map<string, SharedLease>();
  /** Of every lease whose `wanted` was read. */
  readonly #controllers = new WeakMap<SharedLease, AbortController>();
  readonly #client: Client;

  constructor(client: Client) {
    this.#client = client;
  }

  /** Aborts when somebody waits for the lock. Of a kind whose waiters tell nobody it never does. */
  signalOf(lease: SharedLease, kind: LockKind): AbortSignal {
    const known = this.#controllers.get(lease);
    if (known) return known.signal;
    const controller = new AbortController();
    this.#controllers.set(lease, controller);
    if (kind.answer !== null && lease.held) this.#watch(lease);
    return controller.signal;
  }

  #watch(lease: SharedLease): void {
    const { hold, name } = lease;
    const since = hold.recalledAt ?? this.#waitsHereSince(lease);
    if (since !== null) {
      this.#tell(lease, since);
      return;
    }
    this.leases.set(name, lease);
    // Redis has said that nobody waited, and every message since then would have been heard.
    const isKnown = hold.flag > 0 && hold.wantedAt === null && this.#client.inbox.hears(name);
    if (!isKnown) void this.#ask(lease);
  }

  /** Since when the first of the waiting callers of this client has waited; null: none waits. */
  #waitsHereSince({ owner, name }: SharedLease): number | null {
    let first: number | null = null;
    for (const { wait, since } of this.#client.waitersOf(owner.kind, name))
      if (wait > 0 && (first === null || since < first)) first = since;
    return first;
  }

  /**
   * RACE: a waiter queues meanwhile. Before the lock says that its holder is told, it is in the
   * answer; behind that, it sends a message, and those are heard by then. What fails is not told:
   * the next renewal says whether somebody waits.
   */
  async #ask(lease: SharedLease): Promise<void> {
    const { inbox, commands } = this.#client;
    const { hold, name, owner } = lease;
    await inbox.ready(inbox.channelOf(name)).catch(() => {});
    if (this.leases.get(name) !== lease) return;
    const sent = now();
    // A hold that was told before stays as it is: it may say more.
    const flag = inbox.hears(name) && hold.flag === 0 ? 1 : null;
    const { id, label, record } = hold;
    const renewal = { name, id, label, ttl: 1, record, flag } as const;
    const answers = await owner.kind.renew([renewal], commands.replyTimeout).catch(() => []);
    for (const answer of answers) owner.renewed(hold, sent, answer);
  }

  /** Messages are heard again, and may have been missed. */
  askAgain(): void {
    for (const lease of this.leases.values()) void this.#ask(lease);
  }

  /** Somebody waits for the lock of this hold: a message or an answer has said so. */
  recalled(hold: Hold): void {
    const lease = this.leases.get(hold.name);
    if (lease?.hold === hold && hold.recalledAt !== null) this.#tell(lease, hold.recalledAt);
  }

  /** A caller of this client waits for this lock. */
  came(kind: LockKind, name: string, waiter: Waiter): void {
    const lease = this.leases.get(name);
    // An election of that name is another thing: its candidates do not wait for the lock.
    if (lease?.owner.kind.protocol === kind.protocol) this.#tell(lease, waiter.since);
  }

  /** No caller has this hold any more, or another one has it. */
  ended(hold: Hold): void {
    if (this.leases.get(hold.name)?.hold === hold) this.leases.delete(hold.name);
  }

  /** Comes last in whatever has found out: a listener may unlock, and call. */
  #tell(lease: SharedLease, since: number): void {
    this.ended(lease.hold);
    const reason = new LockWantedError(lease.name, since, lease.noun);
    detached(() => this.#controllers.get(lease)?.abort(reason));
  }
}
