import { clientTimer } from "../../util/client-timer.ts";
import { copyOf } from "./chain.ts";
import { type Client, type Cluster, type Credentials, RAW } from "./client.ts";

/**
 * How long a node may take to send the map, in ms: it may be suspended, and another one is asked.
 */
const ANSWER = 1_000;

/** A connection to a node. */
interface Known {
  readonly address: string;
  readonly client: Client | null;
}

/** Which primary has which hash slot: first from the caller's object, then from the nodes. */
export class SlotMap {
  /** Their addresses, each once. */
  primaries: readonly string[] = [];
  readonly #cluster: Cluster;
  readonly #nodes: () => readonly Known[];
  readonly #owners: string[] = [];
  /** A client of the caller's object, whose options all our clients have. */
  #template: Client | undefined;
  #reading: Promise<void> | null = null;
  #turn = 0;
  #begun: () => void = () => {};
  /** Resolves when any primary is known. */
  readonly known = new Promise<void>((resolve) => {
    this.#begun = resolve;
  });

  /** `nodes`: the connections to ask. */
  constructor(cluster: Cluster, nodes: () => readonly Known[]) {
    this.#cluster = cluster;
    this.#nodes = nodes;
  }

  /** The primary that has a slot; "": none is known. Null: any. */
  addressOf(slot: number | null): string {
    return (slot === null ? this.primaries[0] : this.#owners[slot]) ?? "";
  }

  /** Copies the map of the caller's object, if nothing is known yet. */
  begin(): void {
    const { slots, masters } = this.#cluster;
    if (this.primaries.length > 0 || masters.length === 0) return;
    for (const [slot, shard] of slots.entries()) if (shard) this.#owners[slot] = shard.master.address;
    this.#count();
  }

  /** Redis reported the owner of this slot. */
  move(slot: number, address: string): void {
    this.#owners[slot] = address;
    if (!this.primaries.includes(address)) this.#count();
  }

  /** Reads the map from a node. Simultaneous callers share it. */
  refresh(): Promise<void> {
    this.#reading ??= this.#read().finally(() => {
      this.#reading = null;
    });
    return this.#reading;
  }

  /** A client of our own for a node. */
  async clientOf(address: string): Promise<Client> {
    const { masters, _options: { nodeAddressMap: map, defaults } = {} } = this.#cluster;
    this.#template ??= masters.find(({ client }) => client)?.client;
    const [master] = masters;
    if (!this.#template && master) this.#template = await this.#cluster.nodeClient(master);
    if (!this.#template) throw new Error("the Cluster object has no client");
    const colon = address.lastIndexOf(":");
    const mapped = typeof map === "function" ? map(address) : map?.[address];
    return copyOf(
      this.#template,
      mapped ?? { host: address.slice(0, colon), port: Number(address.slice(colon + 1)) },
      credentialsOf(defaults),
    );
  }

  async #read(): Promise<void> {
    this.begin();
    const ready = this.#nodes().filter(({ client }) => client);
    const start = this.#turn++;
    let failure: unknown = new Error("no node of the Cluster is connected");
    for (let i = 0; i < ready.length; i++) {
      const node = ready[(start + i) % ready.length];
      try {
        if (node)
          return this.#apply(node.address, await inTime(node.client?.sendCommand(["CLUSTER", "SLOTS"], RAW)));
      } catch (error) {
        failure = error;
      }
    }
    throw failure;
  }

  /** `[from, to, [host, port, …], replica…]` for each range. */
  #apply(asked: string, reply: unknown): void {
    for (const [from, to, [host, port]] of reply as [number, number, [Buffer | null, number]][]) {
      // A node that does not know its own name means the one that was asked.
      const name = String(host ?? "") || asked.slice(0, asked.lastIndexOf(":"));
      for (let slot = from; slot <= to; slot++) this.#owners[slot] = `${name}:${port}`;
    }
    this.#count();
  }

  #count(): void {
    this.primaries = [...new Set(this.#owners.filter(Boolean))];
    if (this.primaries.length > 0) this.#begun();
  }
}

/**
 * The current credentials of a Cluster's clients. An earlier client has those with which it was
 * made.
 */
function credentialsOf(defaults: Credentials = {}): Credentials {
  const { username, password, credentialsProvider } = defaults;
  return username || password || credentialsProvider ? { username, password, credentialsProvider } : {};
}

/** Rejects after `ANSWER` ms. */
function inTime<T>(answer: Promise<T> | undefined): Promise<T | undefined> {
  return new Promise((resolve, reject) => {
    clientTimer(() => reject(new Error("the node did not answer")), ANSWER);
    Promise.resolve(answer).then(resolve, reject);
  });
}
