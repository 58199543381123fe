import { ClientClosedError } from "../api/errors.ts";
import { REROUTE_MAX, REROUTE_MIN } from "../defaults.ts";
import { clientTimer } from "../util/client-timer.ts";
import { clearTimeout } from "../util/real-timers.ts";
import { slotOf } from "../util/slots.ts";
import { NO_NODE, type Nodes } from "./driver.ts";
import { isRefusal } from "./replies.ts";
import type { ScriptRunner } from "./script-runner.ts";
import { Subscriber } from "./subscriber.ts";
import type { Audience, Subscriptions } from "./transport.ts";

interface Channel {
  readonly listeners: Set<(message: string) => void>;
  /**
   * The address of the node where it is, or will be, subscribed; null: none yet. `leave`
   * unsubscribes there.
   */
  home: string | null;
  leave: () => void;
  /** Its SUBSCRIBE was refused for good: waiting callers retry it, and no search for it runs. */
  isRefused: boolean;
}

/**
 * The subscriber connections of a client in Cluster: one to each primary that serves a slot in use.
 * Sharded messages reach only subscribers at the node that owns the channel's slot. So a channel
 * follows its slot: after a failover, after a migration, and when the library's slot map was out of
 * date.
 */
export class ClusterSubscriber implements Subscriptions {
  readonly #nodeMap: Nodes;
  readonly #audience: Audience;
  readonly #commands: ScriptRunner;
  readonly #nodes = new Map<string, Subscriber>();
  readonly #channels = new Map<string, Channel>();
  #timer: NodeJS.Timeout | null = null;
  #failures = 0;
  #closed = false;

  onGap: () => void = () => {};

  constructor(nodes: Nodes, audience: Audience, commands: ScriptRunner) {
    this.#nodeMap = nodes;
    this.#audience = audience;
    this.#commands = commands;
  }

  isReady(channel: string): boolean {
    return this.#node(channel)?.isReady(channel) ?? false;
  }

  isCounted(channel: string): boolean {
    return this.#node(channel)?.isCounted() ?? false;
  }

  listen(channel: string, listener: (message: string) => void): () => void {
    const known: Channel = this.#channels.get(channel) ?? {
      listeners: new Set(),
      home: null,
      leave: () => {},
      isRefused: false,
    };
    this.#channels.set(channel, known);
    known.listeners.add(listener);
    return () => {
      if (!known.listeners.delete(listener) || known.listeners.size > 0) return;
      this.#leave(known);
      this.#channels.delete(channel);
    };
  }

  async ready(channel: string): Promise<void> {
    if (this.isReady(channel)) return;
    try {
      await this.#subscribe(channel);
    } catch (error) {
      // The slot has moved, or its node is gone: waiting callers find the channel at its new node.
      this.#reroute();
      throw error;
    }
  }

  async selfTest(channel: string): Promise<void> {
    await this.#node(channel)?.selfTest(channel);
  }

  deafness(): readonly string[] {
    return [...this.#nodes.values()].flatMap((node) => node.deafness());
  }

  async recount(): Promise<void> {
    await Promise.all([...this.#nodes.values()].map((node) => node.recount()));
  }

  close(): void {
    this.#closed = true;
    clearTimeout(this.#timer ?? undefined);
    for (const node of this.#nodes.values()) node.close();
  }

  #node(channel: string): Subscriber | undefined {
    const home = this.#channels.get(channel)?.home;
    return home ? this.#nodes.get(home) : undefined;
  }

  async #subscribe(name: string): Promise<void> {
    try {
      await this.#settle(name).ready(name);
    } catch (error) {
      const channel = this.#channels.get(name);
      if (channel) channel.isRefused = isRefusal(error);
      throw error;
    }
  }

  /**
   * The subscriber of the node that owns the channel's slot by the present map; moves the channel
   * there.
   */
  #settle(name: string): Subscriber {
    // RACE: a subscription that began before close() may ask for its channel after close(). A
    // connection opened for it would never be closed.
    if (this.#closed) throw new ClientClosedError(null);
    const channel = this.#channels.get(name);
    const place = this.#nodeMap.placeOf(slotOf(name));
    if (!channel || !place) throw new Error(NO_NODE);
    const { address } = place;
    let node = this.#nodes.get(address);
    if (!node) {
      node = new Subscriber(
        { ...this.#audience, place, isSharded: true, onStray: () => this.#reroute() },
        this.#commands,
      );
      node.onGap = () => this.onGap();
      this.#nodes.set(address, node);
    }
    if (channel.home !== address) {
      this.#leave(channel);
      channel.home = address;
      channel.leave = node.listen(name, (message) => {
        for (const listener of channel.listeners) listener(message);
      });
    }
    return node;
  }

  /** The last channel closes the connection: a node that is gone must not be retried forever. */
  #leave(channel: Channel): void {
    channel.leave();
    if (channel.home === null) return;
    const node = this.#nodes.get(channel.home);
    if (!node?.isIdle) return;
    node.close();
    this.#nodes.delete(channel.home);
  }

  /** Finds nodes for unsubscribed channels, repeatedly while a caller waits. */
  #reroute(): void {
    if (this.#timer || this.#closed) return;
    const delay = Math.min(REROUTE_MAX, REROUTE_MIN * 2 ** this.#failures++);
    const look = (): void => {
      this.#timer = null;
      this.#look();
    };
    this.#timer = clientTimer(look, delay);
  }

  /**
   * Waits for no node: a dead one would fail after five seconds, and its slots may have moved by
   * then. `isFresh`: the map was read after the event that triggered this.
   */
  #look(isFresh = false): void {
    if (this.#closed) return;
    const strays = [...this.#channels].filter(
      ([name, { home, isRefused }]) => !isRefused && (!this.isReady(name) || this.#hasMoved(name, home)),
    );
    if (isFresh || !this.#audience.isWanted()) this.#failures = 0;
    if (!this.#audience.isWanted()) return;
    if (strays.length === 0) {
      // RACE: by an outdated slot map every channel is where it belongs, even one that was
      // subscribed again at a former primary.
      if (!isFresh) this.#nodeMap.refresh((error) => (error ? this.#reroute() : this.#look(true)));
      return;
    }
    this.#nodeMap.refresh();
    for (const [channel] of strays) void this.#follow(channel);
    this.#reroute();
  }

  #hasMoved(channel: string, home: string | null): boolean {
    return this.#nodeMap.placeOf(slotOf(channel))?.address !== home;
  }

  async #follow(channel: string): Promise<void> {
    try {
      await this.#subscribe(channel);
      this.onGap();
    } catch {
      // The search finds it again.
    }
  }
}
