// One of three processes leads, and the others know its address.
//
// Runs without Redis. In a service, createLockClient(redis) takes the place of createTestLocks().
import assert from "node:assert/strict";
import { once } from "node:events";
import { setTimeout } from "node:timers/promises";
import type { LockClient } from "holdfast";
import { createTestLocks } from "holdfast/testing";

/** A process. It leads when it is elected, and follows the address of the leader at all times. */
class Node {
  readonly address: string;
  /** The address of the leader; null: there is none, or it is unknown. */
  leader: string | null = null;
  readonly #locks: LockClient;
  readonly #stopping = new AbortController();
  readonly #running: Promise<unknown>;

  constructor(address: string, locks: LockClient) {
    this.address = address;
    this.#locks = locks;
    const { signal } = this.#stopping;
    // The lease: for so long nobody leads after a leader has crashed.
    const election = locks.election("scheduler", { lease: 5_000 });
    const leading = election.runAsLeader({ value: address, signal }, (term) => this.#work(term.signal));
    this.#running = Promise.all([leading, this.#follow(signal)]);
  }

  /** Only the leader does this, until its signal aborts: it stops, or its term is lost. */
  async #work(signal: AbortSignal): Promise<void> {
    console.log(`${this.address}: leads`);
    if (!signal.aborted) await once(signal, "abort");
  }

  async #follow(signal: AbortSignal): Promise<void> {
    for await (const leader of this.#locks.election("scheduler").observe({ signal }))
      this.leader = leader?.value ?? null;
  }

  /** On SIGTERM: the next one leads at once. */
  async stop(): Promise<void> {
    this.#stopping.abort();
    await this.#running;
    await this.#locks.close();
  }
}

/** The one address that all of them know. */
async function agreed(nodes: readonly Node[], except?: string): Promise<string> {
  for (;;) {
    const known = new Set(nodes.map(({ leader }) => leader));
    const [leader] = known;
    if (known.size === 1 && leader && leader !== except) return leader;
    await setTimeout(5);
  }
}

const locks = createTestLocks();
const clients = [locks.test.another(), locks.test.another(), locks.test.another()];
const nodes = clients.map((client, i) => new Node(`http://10.0.0.${i + 1}:8080`, client));

const first = await agreed(nodes);
console.log(`all three know ${first}`);
const [leaving, ...staying] = nodes.toSorted((a) => (a.address === first ? -1 : 1));
await leaving?.stop();
const second = await agreed(staying, first);
console.log(`it has stopped, and both others know ${second}`);
assert.notEqual(second, first);

for (const node of staying) await node.stop();
await locks.close();
