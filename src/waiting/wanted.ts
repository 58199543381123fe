import { KEEPER_REPLY } from "../defaults.ts";
import { LockWantedError } from "../errors.ts";
import { labelOf } from "../label.ts";
import type { Hold } from "../lease/hold.ts";
import type { SharedLease } from "../lease/shared-lease.ts";
import type { Transport } from "../redis/transport.ts";
import { atMost } from "../util/abort.ts";
import { now } from "../util/clock.ts";
import { outside } from "../util/outside.ts";
import type { GrantInbox } from "./grant-inbox.ts";
import type { LockKind } from "./lock-kind.ts";
import type { Waiter } from "./waiter.ts";

/** What it needs of its client. */
interface Client {
  readonly inbox: GrantInbox;
  readonly commands: Transport;
  /** The callers of this client at a lock, by whatever kind of its protocol. */
  waitersOf(kind: { readonly protocol: string }, name: string): Iterable<Waiter>;
}

/** Of a holder that wants to know. */
interface Wish {
  readonly controller: AbortController;
  readonly kind: LockKind;
}

/**
 * Leases whose holders want to know when somebody waits. Protects all others from paying for that: before the first such holder
 * asks nothing is made, subscribed or sent, and of a lease that has ended nothing is left.
 */
export class WantedLeases {
  /** Those that are held and that nobody is known to wait for, by the lock's name: one at a time holds it. */
  readonly leases = new Map<string, SharedLease>();
  readonly #wishes = new WeakMap<SharedLease, Wish>();
  readonly #client: Client;

  constructor(client: Client) {
    this.#client = client;
  }

  /** Aborts when somebody waits for the lock. Of a kind whose waiters tell nobody it never does. */
  signalOf(lease: SharedLease, kind: LockKind): AbortSignal {
    const known = this.#wishes.get(lease);
    if (known) return known.controller.signal;
    const controller = new AbortController();
    this.#wishes.set(lease, { controller, kind });
    if (kind.answer !== null && lease.held) this.#watch(lease);
    return controller.signal;
  }

  #watch(lease: SharedLease): void {
    const { hold, name } = lease;
    const first = this.#firstHere(lease);
    const since = hold.recalledAt ?? first?.since;
    if (since !== undefined) {
      this.#tell(lease, since, first);
      return;
    }
    this.leases.set(name, lease);
    // Redis has said that nobody waited, and every message since then would have been heard.
    const isKnown = hold.told > 0 && hold.wantedAt === null && this.#client.inbox.hears(name);
    if (!isKnown) void this.#ask(lease);
  }

  /** The caller of this client that has waited for the longest time; null: none waits. */
  #firstHere({ owner, name }: SharedLease): Waiter | null {
    let first: Waiter | null = null;
    for (const waiter of this.#client.waitersOf(owner.kind, name))
      if (waiter.wait > 0 && waiter.since < (first?.since ?? Number.POSITIVE_INFINITY)) first = waiter;
    return first;
  }

  /**
   * RACE: a waiter queues meanwhile. Before the lock says that its holder is told, it is in the answer; behind that, it sends a
   * message, and those are heard by then. What fails is not told: the next renewal says whether somebody waits.
   */
  async #ask(lease: SharedLease): Promise<void> {
    const { inbox, commands } = this.#client;
    const { hold, name, owner } = lease;
    await inbox.ready(inbox.channelOf(name)).catch(() => {});
    if (this.leases.get(name) !== lease) return;
    const sent = now();
    // A hold that was told before stays as it is: it may say more.
    const told = inbox.hears(name) && hold.told === 0 ? 1 : null;
    const { id, label, record } = hold;
    const renewal = { name, id, label, ttl: 1, record, told } as const;
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
    if (lease?.hold === hold && hold.recalledAt !== null) void this.#tellNamed(lease, hold.recalledAt);
  }

  /** A caller of this client waits for this lock. */
  came(kind: LockKind, name: string, waiter: Waiter): void {
    const lease = this.leases.get(name);
    // An election of that name is another thing: its candidates do not wait for the lock.
    if (lease?.owner.kind.protocol === kind.protocol) this.#tell(lease, waiter.since, waiter);
  }

  /** No caller has this hold any more, or another one has it. */
  ended(hold: Hold): void {
    if (this.leases.get(hold.name)?.hold === hold) this.leases.delete(hold.name);
  }

  /** Comes last in whatever has found out: a listener may unlock, and call. `by`: the caller, where it is one of this client. */
  #tell(lease: SharedLease, since: number, by: Waiter | null): void {
    this.ended(lease.hold);
    const { client } = lease.owner.services.events;
    this.#abort(lease, since, by && labelOf(by.terms.label?.trim() ?? "", client));
  }

  /** What tells of a waiter does not name it, so Redis is asked. Null: it does not say in time, or the first waiter has no label. */
  async #tellNamed(lease: SharedLease, since: number): Promise<void> {
    this.ended(lease.hold);
    const wish = this.#wishes.get(lease);
    if (!wish) return;
    let label: string | null = null;
    const looked = wish.kind.inspect(lease.name).then(({ waiters }) => {
      label = waiters?.[0]?.label ?? null;
    });
    await atMost(looked, KEEPER_REPLY).catch(() => {});
    // RACE: its last caller has left meanwhile.
    if (!lease.ended) this.#abort(lease, since, label);
  }

  #abort(lease: SharedLease, since: number, label: string | null): void {
    const reason = new LockWantedError(lease.name, since, label, lease.noun);
    outside(() => this.#wishes.get(lease)?.controller.abort(reason));
  }
}
