import type { RedisArgument } from "../../api/redis.ts";
import { clientTimer } from "../../util/client-timer.ts";
import { clocks } from "../../util/clock.ts";
import { clearTimeout, queueMicrotask } from "../../util/real-timers.ts";
import { slotOf } from "../../util/slots.ts";
import {
  isReplyError,
  type Link,
  type Listener,
  type ListenerEvents,
  NO_NODE,
  type Nodes,
} from "../driver.ts";
import { few } from "../place-name.ts";
import { isApart } from "../replies.ts";
import { NOT_CONNECTED, soon } from "./chain.ts";
import { type Cluster, listenTo, nameOf, printUnheard } from "./client.ts";
import { Lifetime } from "./lifetime.ts";
import { NodeRedisLink } from "./node-redis-link.ts";
import { Pipe } from "./pipe.ts";
import type { Sending } from "./sending.ts";
import { REDIRECTS, ServerLink } from "./server-link.ts";
import { SlotMap } from "./slot-map.ts";

/** How long until waiting commands are sent again and the slot map is read, in ms. It doubles. */
const AGAIN_MIN = 100;
const AGAIN_MAX = 1_000;

/**
 * A link to a Cluster: its own connection to each primary, and its own slot map. Both begin as in
 * the caller's object. That object does not help after a failover: version 5 never rereads its map
 * by itself and keeps calling a primary that is gone, version 6 does so after 5 s, and a suspended
 * server stops both. Nor does it report a lost connection.
 */
export class ClusterLink extends NodeRedisLink implements Link {
  readonly kind = "cluster";
  readonly address = "";
  readonly isTls = false;
  readonly opensOnce = false;
  /** So are its connections, also those of the caller's object. */
  readonly isOwn = true;
  readonly nodes: Nodes;
  readonly #cluster: Cluster;
  readonly #lifetime: Lifetime;
  readonly #map: SlotMap;
  protected readonly pipe: Pipe;
  readonly #links = new Map<string, ServerLink>();
  /** Rejects commands that wait until any primary is known. */
  readonly #commands = new Set<(error: Error) => void>();
  #stop: (() => void) | null = null;
  #timer: NodeJS.Timeout | null = null;
  #failures = 0;

  /** `isLasting`: opened here, and closed by `close`. */
  constructor(cluster: Cluster, isLasting = false) {
    super(isLasting);
    this.#cluster = cluster;
    this.#lifetime = new Lifetime(cluster);
    this.#map = new SlotMap(cluster, () => [...this.#links.values()]);
    this.pipe = new Pipe(
      ({ keys, asked }) => this.#link(asked || this.#map.addressOf(keys.slot))?.client ?? null,
      (sending, error) => this.#isElsewhere(sending, error),
    );
    this.pipe.onEmpty = () => this.rest();
    this.nodes = {
      addressOf: (slot) => this.#map.addressOf(slot),
      placeOf: (slot) => this.#link(this.#map.addressOf(slot)),
      primaries: () =>
        this.#map.primaries.map((address) => this.#link(address)).filter((one) => one !== null),
      refresh: (done) => this.#refresh(done),
    };
    if (isLasting) this.begin();
  }

  get name(): string {
    const { _options: { rootNodes = [] } = {} } = this.#cluster;
    const known = this.#map.primaries.length > 0 ? this.#map.primaries : rootNodes.map(nameOf);
    return `Cluster of ${few(known)}`;
  }

  get keyPrefix(): string {
    return this.#cluster._keyPrefix ?? "";
  }

  get state(): "ready" | "away" | "ended" {
    if (this.isClosed || this.#isOrphaned) return "ended";
    for (const { state } of this.#links.values()) if (state === "ready") return "ready";
    return "away";
  }

  get status(): string {
    const { state } = this;
    if (state === "away") return this.#cluster.isOpen ? "connecting" : "wait";
    return state === "ready" ? state : "end";
  }

  send(call: Sending): void {
    this.begin();
    call.isWritten = false;
    const refusal = this.#refusal;
    if (refusal) call.owner.refused(call, refusal);
    else this.pipe.send(call);
    if (!refusal && !call.isWritten) this.#again();
  }

  async command(words: readonly RedisArgument[]): Promise<unknown> {
    await this.#known();
    const links = [...this.#links.values()];
    const link = links.find(({ state }) => state === "ready") ?? links[0];
    if (!link) throw new Error("no node of the Cluster is known");
    return link.command(words);
  }

  async commandOn(
    key: string,
    before: readonly RedisArgument[],
    after: readonly RedisArgument[],
  ): Promise<unknown> {
    await this.#known();
    const full = this.keyPrefix + key;
    for (let redirects = 0; ; redirects++) {
      const link = this.#link(this.#map.addressOf(slotOf(full)));
      if (!link) throw new Error(NO_NODE);
      try {
        return await link.command([...before, full, ...after]);
      } catch (error) {
        const [, slot, address] = /^MOVED (\d+) (\S+)/.exec(isReplyError(error) ? error.message : "") ?? [];
        if (address === undefined || redirects === REDIRECTS) throw error;
        this.#map.move(Number(slot), address);
      }
    }
  }

  listen(isSharded: boolean, events: ListenerEvents): Listener {
    const [address = ""] = this.#map.primaries;
    const link = this.#link(address);
    if (!link) throw new Error("no node of the Cluster is known");
    return link.listen(isSharded, events);
  }

  open(): Link {
    return new ClusterLink(this.#cluster, true);
  }

  openOnce(): never {
    throw new TypeError("a Cluster of node-redis opens no connection that is used once");
  }

  replace(address: string): boolean {
    return this.#links.get(address)?.replace() ?? false;
  }

  close(): void {
    this.isClosed = true;
    this.#end();
  }

  get #refusal(): Error | null {
    if (this.state === "ended") return new Error("The client is closed");
    return this.isLasting || this.#cluster.isOpen ? null : new Error(NOT_CONNECTED);
  }

  /** Was the caller's object of this link closed? */
  get #isOrphaned(): boolean {
    return !this.isLasting && this.#lifetime.isOver;
  }

  protected begin(): void {
    if (this.#stop || this.isClosed) return;
    const ended = (): void => {
      if (this.isLasting) return;
      this.#end();
      for (const events of [...this.listeners]) events.ended();
    };
    this.#stop = listenTo(this.#cluster, {
      connect: () => this.#connect(),
      disconnect: ended,
      error: (error: unknown) => {
        printUnheard(this.#cluster, error);
        this.lastError ??= error;
      },
    });
    this.#connect();
  }

  /** Resolves when any primary is known, and rejects if none will be. */
  #known(): Promise<void> {
    this.begin();
    return new Promise((resolve, reject) => {
      const refusal = this.#refusal;
      if (refusal) return reject(refusal);
      this.#commands.add(reject);
      this.#map.known.then(() => {
        this.#commands.delete(reject);
        resolve();
      });
    });
  }

  /** Connects to all primaries, as soon as any are known. */
  #connect(): void {
    this.#map.begin();
    for (const address of this.#map.primaries) this.#link(address);
  }

  protected rest(): void {
    if (this.isLasting || this.listeners.size > 0 || this.#commands.size > 0) return;
    if (this.pipe.isEmpty) this.#end();
  }

  #end(): void {
    clearTimeout(this.#timer ?? undefined);
    this.#timer = null;
    this.#stop?.();
    this.#stop = null;
    for (const link of this.#links.values()) link.close();
    this.#links.clear();
    const closed = new Error("The client is closed");
    this.pipe.fail(closed);
    for (const reject of this.#commands) reject(closed);
    this.#commands.clear();
  }

  /**
   * The connection to a node. It is given up when it is lost and the node has no slots any more.
   */
  #link(address: string): ServerLink | null {
    if (address === "" || this.isClosed) return null;
    const known = this.#links.get(address);
    if (known) return known;
    const link = new ServerLink(
      {
        kind: "server",
        address,
        name: address,
        isTls: false,
        keyPrefix: this.keyPrefix,
        owner: null,
        make: () => this.#map.clientOf(address),
        pause: (tries) => (this.#map.primaries.includes(address) ? soon(tries) : null),
      },
      "own",
    );
    this.#links.set(address, link);
    link.on({
      ready: () => {
        this.lastError = null;
        this.pipe.pump();
        for (const events of [...this.listeners]) events.ready();
      },
      lost: () => {
        this.lastError = link.lastError;
        this.lostAt = clocks.mono.now();
        for (const events of [...this.listeners]) events.lost(null);
        this.#again();
      },
      ended: () => {
        if (this.#links.get(address) === link) this.#links.delete(address);
      },
    });
    return link;
  }

  /** Did Redis reply that the command was sent to the wrong node, or at the wrong time? */
  #isElsewhere(sending: Sending, error: Error): boolean {
    const [word, slot = "", address = ""] = error.message.split(" ");
    const isLater = isApart(error) || word === "CLUSTERDOWN";
    if (word !== "MOVED" && word !== "ASK" && !isLater) return false;
    if (isApart(error) && sending.script.isImpatient) return false;
    if (++sending.redirects > REDIRECTS) return false;
    if (word === "ASK") sending.asked = address;
    if (word === "MOVED") {
      this.#map.move(Number(slot), address);
      this.#refresh();
    }
    if (isLater) this.#again();
    else queueMicrotask(() => this.pipe.pump());
    return true;
  }

  /** Retries waiting commands, with a new map, until none is left. */
  #again(): void {
    if (this.#timer || !this.#stop) return;
    const delay = Math.min(AGAIN_MIN * 2 ** this.#failures++, AGAIN_MAX);
    const again = (): void => {
      this.#timer = null;
      this.pipe.pump();
      if (this.pipe.isWaiting) {
        this.#refresh();
        this.#again();
      } else this.#failures = 0;
    };
    this.#timer = clientTimer(again, delay);
  }

  #refresh(done: (error?: unknown) => void = () => {}): void {
    this.begin();
    this.#map.refresh().then(
      () => {
        for (const address of this.#map.primaries) this.#link(address);
        this.pipe.pump();
        done();
      },
      (error) => done(error),
    );
  }
}
