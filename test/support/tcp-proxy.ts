import { once } from "node:events";
import { type AddressInfo, connect, createServer, type Server, type Socket } from "node:net";
import type { Match } from "./matches.ts";
import { type Fault, type HeldCommand, ProxyConnection } from "./proxy-connection.ts";
import { replay } from "./replay.ts";
import { type DelayOptions, isAmong, Traffic, type Which } from "./traffic.ts";

export { type Match, named, nth } from "./matches.ts";
export type { HeldCommand } from "./proxy-connection.ts";
export type { DelayOptions, Which } from "./traffic.ts";

/**
 * A proxy between clients and a real Redis that injects one chosen fault.
 *
 * The faults of a single command are one-shot: they hit the next matching command that is sent
 * after the call, on any connection; the first matching fault wins. Their promises resolve when the
 * fault has happened. Commands that were pipelined before the chosen one are answered first.
 *
 * @example
 * const proxy = await TcpProxy.start(server);
 * const redis = new Redis(proxy.url);
 * const dropped = proxy.dropReply(named("incr"));
 * await redis.incr("n"); // 2: executed, its reply lost, sent again
 * await dropped;
 */
export class TcpProxy {
  /** The commands that clients have sent since `record()` was called. */
  readonly commands: { connection: number; command: string[] }[] = [];

  readonly #target: { host: string; port: number };
  readonly #server: Server;
  readonly #connections = new Set<ProxyConnection>();
  #faults: (Fault & { match: Match })[] = [];
  #opened = 0;
  #recording = false;
  readonly #traffic = new Traffic();
  #refusing = false;
  #frozen = false;

  private constructor(target: { host: string; port: number }) {
    this.#target = target;
    this.#server = createServer({ noDelay: true }, (client) => this.#accept(client));
  }

  static async start(target: { host: string; port: number }): Promise<TcpProxy> {
    const proxy = new TcpProxy(target);
    proxy.#server.listen(0, "127.0.0.1");
    await once(proxy.#server, "listening");
    return proxy;
  }

  get port(): number {
    return (this.#server.address() as AddressInfo).port;
  }

  get url(): string {
    return `redis://127.0.0.1:${this.port}`;
  }

  async stop(): Promise<void> {
    const closed = once(this.#server, "close");
    this.#server.close();
    for (const connection of this.#connections) connection.destroy();
    await closed;
  }

  /** Redis executes the command; its reply is dropped and the connection destroyed. */
  dropReply(match: Match): Promise<string[]> {
    return new Promise((happened) => this.#faults.push({ kind: "drop reply", match, happened }));
  }

  /** The command never reaches Redis; the connection is destroyed. */
  dropCommand(match: Match): Promise<string[]> {
    return new Promise((happened) => this.#faults.push({ kind: "drop command", match, happened }));
  }

  /** The client's connection is destroyed; the command reaches Redis when `deliver()` is called, late. */
  holdCommand(match: Match): Promise<HeldCommand> {
    return new Promise((happened) => this.#faults.push({ kind: "hold command", match, happened }));
  }

  /**
   * The command passes, and is answered, normally; `deliver()` sends a second copy of it on another
   * connection.
   */
  copyCommand(match: Match): Promise<HeldCommand> {
    return new Promise((happened) => this.#faults.push({ kind: "copy command", match, happened }));
  }

  /** The connection is half open from this command on; later connections work. `thaw()` ends it. */
  stall(match: Match): Promise<string[]> {
    return new Promise((happened) => this.#faults.push({ kind: "stall", match, happened }));
  }

  /**
   * Nothing passes any more, in either direction, but connections stay open. "all" is a dead
   * network: it freezes later connections too. The others freeze only existing ones: a half-open
   * connection, while a new one works.
   */
  freeze(which: Which = "all"): void {
    if (which === "all") this.#frozen = true;
    for (const connection of this.#select(which)) connection.freeze();
  }

  /**
   * Separates the subscribers from Redis while commands pass, or commands while messages pass;
   * later connections too. The commands with which a client sets up a connection pass, or there
   * would be no later subscriber.
   *
   * @example
   * proxy.partition("subscribers");
   * await redis.publish("news", "1"); // 1: the subscriber is still counted, and hears nothing
   * proxy.thaw(); // now it does
   */
  partition(which: "subscribers" | "commands"): void {
    this.#traffic.partitioned = which;
    this.freeze(which);
  }

  /** Ends `freeze()` and `partition()`: held bytes arrive, late and in order. */
  thaw(): void {
    this.#frozen = false;
    this.#traffic.partitioned = undefined;
    for (const connection of [...this.#connections]) connection.thaw();
  }

  /**
   * From now on every byte is this many ms late; 0 ends it. Each call replaces the one before.
   *
   * @example
   * proxy.delay(200, { direction: "to client", which: "subscribers" });
   * await redis.publish("news", "1"); // at once; the message takes 200 ms
   */
  delay(ms: number, options: DelayOptions = {}): void {
    this.#traffic.delay = { ms, ...options };
  }

  /**
   * Closes connections, as clients see it, but keeps bytes that clients have sent on them and Redis
   * has not received: freeze them first. `deliver()` sends those, late, and resolves with the
   * number of connections when Redis has answered all.
   *
   * @example
   * proxy.freeze("commands");
   * redis.incr("n").catch(() => {});
   * const old = proxy.strand("commands"); // ioredis connects anew, and sends it again
   * await redis.get("n"); // "1"
   * await old.deliver(); // and now it is "2"
   */
  strand(which: Which = "all"): { deliver(): Promise<number> } {
    const deliveries = this.#select(which).map((connection) => connection.strand());
    const deliver = async () => (await Promise.all(deliveries.map((send) => send()))).length;
    return { deliver };
  }

  /** Destroys connections; returns how many. */
  cut(which: Which = "all"): number {
    const connections = this.#select(which);
    for (const connection of connections) connection.destroy();
    return connections.length;
  }

  /** While on, new connections are accepted and destroyed at once. */
  refuse(on: boolean): void {
    this.#refusing = on;
  }

  /** Starts recording `commands`. */
  record(): void {
    this.#recording = true;
  }

  #select(which: Which): ProxyConnection[] {
    const live = [...this.#connections].filter((connection) => connection.isLive);
    return live.filter((connection) => isAmong(connection, which));
  }

  #accept(client: Socket): void {
    if (this.#refusing) {
      client.destroy();
      return;
    }
    const server = connect({ ...this.#target, noDelay: true });
    const connection = new ProxyConnection(++this.#opened, client, server, {
      inspect: (id, command) => this.#inspect(id, command),
      holds: (one, command) => this.#traffic.holds(one, command),
      replay: (frame) => replay(this.#target, frame),
      delay: (one, direction) => this.#traffic.delayOf(one, direction),
      closed: () => this.#connections.delete(connection),
    });
    this.#connections.add(connection);
    if (this.#frozen) connection.freeze();
  }

  #inspect(connection: number, command: string[]): Fault | undefined {
    if (this.#recording) this.commands.push({ connection, command });
    const fault = this.#faults.find(({ match }) => match(command));
    if (fault !== undefined) this.#faults = this.#faults.filter((other) => other !== fault);
    return fault;
  }
}
