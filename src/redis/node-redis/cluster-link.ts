import type { RedisArgument } from "../../api/redis.ts";
import { clocks } from "../../util/clock.ts";
import { detached } from "../../util/detached.ts";
import { clearTimeout, setTimeout } from "../../util/real-timers.ts";
import type { Call, Link, LinkEvents, Listener, ListenerEvents, Nodes } from "../driver.ts";
import { few } from "../place-name.ts";
import { isApart } from "../replies.ts";
import { NOT_CONNECTED, soon } from "./chain.ts";
import { type Cluster, listenTo, nameOf } from "./client.ts";
import { Pipe } from "./pipe.ts";
import type { Sending } from "./sending.ts";
import { REDIRECTS, ServerLink } from "./server-link.ts";
import { SlotMap } from "./slot-map.ts";

/** When what waits is tried again, and the map of slots is read: after so many ms, then after twice that. */
const AGAIN_MIN = 100;
const AGAIN_MAX = 1_000;

/**
 * A link to a Cluster: a connection of our own to each primary, and a map of slots of our own.
 * They begin as the caller's object has them. It is no help after a failover: version 5 never reads
 * its map again by itself and goes on calling a primary that is gone, version 6 does so after 5 s,
 * and a server that stands still stops both. Nor does it say when a connection of its was lost.
 */
export class ClusterLink implements Link {
  readonly library = "node-redis";
  readonly kind = "cluster";
  readonly address = "";
  readonly isTls = false;
  readonly opensOnce = false;
  /** Its connections are, also those of the caller's object. */
  readonly isOwn = true;
  lastError: unknown = null;
  readonly nodes: Nodes;
  readonly #cluster: Cluster;
  readonly #isLasting: boolean;
  readonly #map: SlotMap;
  readonly #pipe: Pipe;
  readonly #links = new Map<string, ServerLink>();
  readonly #listeners = new Set<LinkEvents>();
  #stop: (() => void) | null = null;
  #isClosed = false;
  #wasOpen: boolean;
  #readyUntil = Number.NEGATIVE_INFINITY;
  #timer: NodeJS.Timeout | null = null;
  #failures = 0;

  /** `isLasting`: opened here, and closed by `close`. */
  constructor(cluster: Cluster, isLasting = false) {
    this.#cluster = cluster;
    this.#isLasting = isLasting;
    this.#wasOpen = cluster.isOpen;
    this.#map = new SlotMap(cluster, () => [...this.#links.values()]);
    this.#pipe = new Pipe(
      ({ call, asked }) => this.#link(asked || this.#map.addressOf(call.keys.slot))?.client ?? null,
      (sending, error) => this.#isElsewhere(sending, error),
    );
    this.#pipe.onEmpty = () => this.#rest();
    this.nodes = {
      addressOf: (slot) => this.#map.addressOf(slot),
      placeOf: (slot) => this.#link(this.#map.addressOf(slot)),
      primaries: () =>
        this.#map.primaries.map((address) => this.#link(address)).filter((one) => one !== null),
      refresh: (done) => this.#refresh(done),
    };
    if (isLasting) this.#open();
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
    if (this.#isClosed || this.#isOrphaned) return "ended";
    for (const { state } of this.#links.values()) if (state === "ready") return "ready";
    return "away";
  }

  get status(): string {
    const { state } = this;
    if (state === "away") return this.#cluster.isOpen ? "connecting" : "wait";
    return state === "ready" ? state : "end";
  }

  get readyUntil(): number {
    return this.state === "ready" ? clocks.mono.now() : this.#readyUntil;
  }

  get heldUntil(): number {
    return this.#pipe.heldUntil;
  }

  get holdsBack(): boolean {
    return this.#pipe.holdsBack;
  }

  on(events: LinkEvents): () => void {
    this.#listeners.add(events);
    this.#open();
    return () => {
      if (this.#listeners.delete(events)) this.#rest();
    };
  }

  send(call: Call): void {
    this.#open();
    call.isWritten = false;
    const refusal = this.#refusal;
    if (refusal) call.owner.refused(call, refusal);
    else this.#pipe.send(call);
    if (!refusal && !call.isWritten) this.#again();
  }

  async command(words: readonly RedisArgument[]): Promise<unknown> {
    this.#open();
    const refusal = this.#refusal;
    if (refusal) throw refusal;
    await this.#map.known;
    const links = [...this.#links.values()];
    const link = links.find(({ state }) => state === "ready") ?? links[0];
    if (!link) throw new Error("no node of the Cluster is known");
    return link.command(words);
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

  /** node-redis writes when it does, and cannot be hurried. */
  flush(): void {}

  replace(address: string): boolean {
    return this.#links.get(address)?.replace() ?? false;
  }

  close(): void {
    this.#isClosed = true;
    this.#end();
  }

  get #refusal(): Error | null {
    if (this.state === "ended") return new Error("The client is closed");
    return this.#isLasting || this.#cluster.isOpen ? null : new Error(NOT_CONNECTED);
  }

  /** Was the caller's object closed, which this link stands for? */
  get #isOrphaned(): boolean {
    this.#wasOpen ||= this.#cluster.isOpen;
    return !this.#isLasting && this.#wasOpen && !this.#cluster.isOpen;
  }

  #open(): void {
    if (this.#stop || this.#isClosed) return;
    const ended = (): void => {
      if (this.#isLasting) return;
      this.#end();
      for (const events of [...this.#listeners]) events.ended();
    };
    this.#stop = listenTo(this.#cluster, {
      connect: () => this.#begin(),
      disconnect: ended,
      error: (error: unknown) => {
        this.lastError ??= error;
      },
    });
    this.#begin();
  }

  /** Connects to all primaries, as soon as any are known. */
  #begin(): void {
    this.#map.begin();
    for (const address of this.#map.primaries) this.#link(address);
  }

  #rest(): void {
    if (!this.#isLasting && this.#listeners.size === 0 && this.#pipe.isEmpty) this.#end();
  }

  #end(): void {
    clearTimeout(this.#timer ?? undefined);
    this.#timer = null;
    this.#stop?.();
    this.#stop = null;
    for (const link of this.#links.values()) link.close();
    this.#links.clear();
    this.#pipe.fail(new Error("The client is closed"));
  }

  /** The connection to a node. It is given up when it is lost, and the node has no slots any more. */
  #link(address: string): ServerLink | null {
    if (address === "" || this.#isClosed) return null;
    const known = this.#links.get(address);
    if (known) return known;
    const link = new ServerLink(
      {
        kind: "server",
        address,
        name: address,
        isTls: false,
        keyPrefix: this.keyPrefix,
        source: () => {
          throw new Error("a node has connections of our own only");
        },
        make: () => this.#map.clientOf(address),
        pause: (tries) => (this.#map.primaries.includes(address) ? soon(tries) : null),
      },
      "own",
    );
    this.#links.set(address, link);
    link.on({
      ready: () => {
        this.lastError = null;
        this.#pipe.pump();
        for (const events of [...this.#listeners]) events.ready();
      },
      lost: () => {
        this.lastError = link.lastError;
        this.#readyUntil = clocks.mono.now();
        for (const events of [...this.#listeners]) events.lost(null);
        this.#again();
      },
      ended: () => {
        if (this.#links.get(address) === link) this.#links.delete(address);
      },
    });
    return link;
  }

  /** What Redis replied when the command was sent to the wrong node, or at the wrong time. */
  #isElsewhere(sending: Sending, error: Error): boolean {
    const [word, slot = "", address = ""] = error.message.split(" ");
    const isLater = isApart(error) || word === "CLUSTERDOWN";
    if (word !== "MOVED" && word !== "ASK" && !isLater) return false;
    if (isApart(error) && sending.call.script.isImpatient) return false;
    if (++sending.redirects > REDIRECTS) return false;
    if (word === "ASK") sending.asked = address;
    if (word === "MOVED") {
      this.#map.move(Number(slot), address);
      this.#refresh();
    }
    if (isLater) this.#again();
    else queueMicrotask(() => this.#pipe.pump());
    return true;
  }

  /** Tries what waits again, with a new map, until nothing does. */
  #again(): void {
    if (this.#timer || !this.#stop) return;
    const delay = Math.min(AGAIN_MIN * 2 ** this.#failures++, AGAIN_MAX);
    const again = (): void => {
      this.#timer = null;
      this.#pipe.pump();
      if (this.#pipe.isWaiting) {
        this.#refresh();
        this.#again();
      } else this.#failures = 0;
    };
    this.#timer = detached(() => setTimeout(again, delay).unref());
  }

  #refresh(done: (error?: unknown) => void = () => {}): void {
    this.#open();
    this.#map.refresh().then(
      () => {
        for (const address of this.#map.primaries) this.#link(address);
        this.#pipe.pump();
        done();
      },
      (error) => done(error),
    );
  }
}
