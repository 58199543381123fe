import { TestClient } from "../testing/client.ts";
import { TestNetwork } from "../testing/test-network.ts";
import type { Demo } from "../ui/demo.ts";
import type { LockUIOptions } from "../ui/options.ts";
import { type Done, type Knob, LATENCIES, type ProcessKnob, type ShownDemo } from "../ui/shown.ts";
import { Deadlock } from "./deadlock.ts";
import { Member } from "./member.ts";
import { ROLES } from "./roles.ts";

/** ms: short, so that the end of a dead process's lease is seen soon. */
const LEASE = 10_000;

/** A fleet that works on a Redis in the memory of this process, until it is closed. */
export class Fleet implements Demo {
  /** Of the page: no knob reaches it. */
  readonly locks: TestClient;
  readonly redis: NonNullable<LockUIOptions["redis"]>;
  readonly #members: readonly Member[];
  #latency = 0;
  #deadlock: Deadlock | null = null;

  constructor() {
    const [network, clients] = [new TestNetwork(), new Set<TestClient>()];
    const create = (process: string): TestClient =>
      new TestClient(network, clients, { leaseTime: LEASE, process });
    this.locks = create("page:1");
    // Of a Redis in memory a link is the connection; its type is no library's.
    this.redis = this.locks.connect() as never;
    this.#members = ROLES.map((role) => new Member(role, create));
  }

  readonly close = async (): Promise<void> => {
    this.#deadlock?.end();
    await Promise.all([...this.#members.map((one) => one.close()), this.locks.close({ grace: 0 })]);
  };

  shown(): ShownDemo {
    const fleet = this.#members.map(({ shown }) => shown);
    return { fleet, lateBy: this.#latency, isDeadlocked: this.#deadlock !== null };
  }

  turn(wanted: unknown): Done | null {
    const said = this.#turn((wanted ?? {}) as Partial<Record<string, unknown>>);
    return said === null ? null : { done: true, said };
  }

  #turn({ knob, process, ms }: { readonly [K in string]?: unknown }): string | null {
    const wanted = knob as Knob["knob"];
    if (wanted === "latency") return this.#delay(ms);
    if (wanted === "deadlock") return this.#begin();
    if (wanted === "end deadlock") return this.#deadlock?.end() ?? null;
    const member = this.#members.find(({ role }) => role.name === process);
    return member && KNOBS.includes(wanted) ? member.turn(wanted) : null;
  }

  #delay(ms: unknown): string | null {
    const known = LATENCIES.find((one) => one === ms);
    if (known === undefined) return null;
    this.#latency = known;
    for (const member of this.#members) member.latency = known;
    return known === 0 ? "Redis answers at once." : `Each answer of Redis is ${known} ms late.`;
  }

  #begin(): string | null {
    if (this.#deadlock) return null;
    const [one, other] = this.#members.filter(({ locks }) => locks !== null);
    if (!one?.locks || !other?.locks) return "A deadlock needs two processes that work: start some.";
    const made = new Deadlock(one.locks, other.locks);
    this.#deadlock = made;
    void made.over.then(() => {
      this.#deadlock = null;
    });
    return `${one.role.name} and ${other.role.name} wait for each other: the line on top says so in some 10 s.`;
  }
}

const KNOBS: readonly ProcessKnob[] = ["crash", "start", "pause", "resume", "cut", "mend", "hang", "let go"];
