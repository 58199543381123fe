import type { RedisArgument } from "../../api/redis.ts";
import { clocks } from "../../util/clock.ts";
import { queueMicrotask } from "../../util/real-timers.ts";
import type { Link, Listener, ListenerEvents } from "../driver.ts";
import { isOfReplica } from "../trouble.ts";
import { Chain } from "./chain.ts";
import { type Client, isReply, RAW, toWord } from "./client.ts";
import { Given } from "./given.ts";
import { NodeListener } from "./listener.ts";
import { NodeRedisLink } from "./node-redis-link.ts";
import type { Origin } from "./origin.ts";
import { Pipe } from "./pipe.ts";
import type { Sending } from "./sending.ts";
import type { Source } from "./source.ts";

/** How often Redis may redirect a command: as often as in a Cluster. */
export const REDIRECTS = 16;

/** A link to one server at a time: the caller's client, or clients of our own. */
export class ServerLink extends NodeRedisLink implements Link {
  readonly nodes = null;
  readonly isOwn: boolean;
  readonly #origin: Origin;
  readonly #source: Source;
  protected readonly pipe: Pipe;
  /** Commands that wait for a client, or for its answer. */
  readonly #waiting = new Set<{ resolve?(client: Client): void; reject(error: Error): void }>();
  #isOpen = false;
  #wasReady = false;

  /** `own`: opened here; "once": opened here, and never reconnects; null: on the caller's connection. */
  constructor(origin: Origin, own: "own" | "once" | null = null) {
    super(own !== null);
    this.#origin = origin;
    if (own === null && origin.given) this.#source = new Given(origin.given);
    else
      this.#source = new Chain(
        () => origin.make(),
        own === "once" ? () => null : (tries, error) => origin.pause(tries, error),
        origin.owner,
      );
    // The link of a Sentinel object has its own connections, too.
    this.isOwn = own !== "once" && this.#source instanceof Chain;
    this.pipe = new Pipe(
      () => this.#source.client,
      (sending, error) => this.#isElsewhere(error) && ++sending.redirects <= REDIRECTS,
    );
    this.pipe.onEmpty = () => this.rest();
    if (this.isLasting) this.begin();
  }

  get kind(): "server" | "sentinel" {
    return this.#origin.kind;
  }

  get address(): string {
    return this.#origin.address;
  }

  get name(): string {
    return this.#origin.name;
  }

  get isTls(): boolean {
    return this.#origin.isTls;
  }

  get keyPrefix(): string {
    return this.#origin.keyPrefix;
  }

  /**
   * WAIT proves something about its own connection only, and Sentinel may name another master in
   * between.
   */
  get opensOnce(): boolean {
    return this.kind === "server";
  }

  /** While it is ready. */
  get client(): Client | null {
    return this.#source.client;
  }

  get state(): "ready" | "away" | "ended" {
    return this.isClosed ? "ended" : this.#source.state;
  }

  get status(): string {
    return this.isClosed ? "end" : this.#source.status;
  }

  send(call: Sending): void {
    this.begin();
    call.isWritten = false;
    const refusal = this.#refused();
    if (refusal) call.owner.refused(call, refusal);
    else this.pipe.send(call);
  }

  async command(words: readonly RedisArgument[]): Promise<unknown> {
    const refusal = this.#refused();
    if (refusal) throw refusal;
    const client = this.#source.client ?? (await this.#client());
    try {
      return await this.#unlessFailed(client.sendCommand(words.map(toWord), RAW));
    } catch (error) {
      isReply(error);
      throw error;
    }
  }

  commandOn(
    key: string,
    before: readonly RedisArgument[],
    after: readonly RedisArgument[],
  ): Promise<unknown> {
    return this.command([...before, this.keyPrefix + key, ...after]);
  }

  /** Rejects as soon as no answer counts any more. */
  #unlessFailed(answer: Promise<unknown>): Promise<unknown> {
    this.begin();
    return new Promise((resolve, reject) => {
      const asked = { reject };
      // Throws, and so rejects, if a wrapped client has returned no promise.
      const answered = answer.then(resolve, reject);
      this.#waiting.add(asked);
      answered.finally(() => {
        if (this.#waiting.delete(asked)) this.rest();
      });
    });
  }

  listen(isSharded: boolean, events: ListenerEvents): Listener {
    return new NodeListener(this.#origin, isSharded, events);
  }

  open(): Link {
    return new ServerLink(this.#origin, "own");
  }

  openOnce(): Link {
    return new ServerLink(this.#origin, "once");
  }

  replace(): boolean {
    return this.#source.replace(new Error("Redis was silent for too long, so the connection is replaced"));
  }

  close(): void {
    this.isClosed = true;
    this.#source.close();
    this.#fail(new Error("The client is closed"));
  }

  get #refusal(): Error | null {
    return this.isClosed ? new Error("The client is closed") : this.#source.refusal;
  }

  /** Called before a command is sent. */
  #refused(): Error | null {
    const refusal = this.#refusal;
    // RACE: the caller's object was closed without reporting it: our connection would stay. Not
    // within `send`, which reports nothing about the link.
    if (refusal && this.state === "ended") queueMicrotask(() => this.#source.replace(refusal));
    return refusal;
  }

  #client(): Promise<Client> {
    this.begin();
    return new Promise((resolve, reject) => {
      const refusal = this.#refusal;
      if (refusal) reject(refusal);
      else this.#waiting.add({ resolve, reject });
    });
  }

  protected begin(): void {
    if (this.#isOpen || this.isClosed) return;
    this.#isOpen = true;
    this.#wasReady = this.#source.state === "ready";
    this.#source.open({
      ready: () => this.#ready(),
      lost: (error) => this.#lost(error),
      ended: () => this.#ended(),
    });
  }

  /** Releases the caller's object when no command is under way and no listener is left. */
  protected rest(): void {
    if (this.isLasting || !this.#isOpen || this.listeners.size > 0) return;
    if (!this.pipe.isEmpty || this.#waiting.size > 0) return;
    this.#isOpen = false;
    this.#source.close();
  }

  #ready(): void {
    this.#wasReady = true;
    this.lastError = null;
    const { client } = this.#source;
    this.pipe.pump();
    for (const one of [...this.#waiting]) {
      if (!client || !one.resolve) continue;
      this.#waiting.delete(one);
      one.resolve(client);
    }
    for (const events of [...this.listeners]) events.ready();
  }

  #lost(error: unknown): void {
    if (this.#wasReady) this.lostAt = clocks.mono.now();
    this.#wasReady = false;
    if (error !== null) this.lastError = error;
    for (const events of [...this.listeners]) events.lost(null);
    // Commands under way fail if the caller's options forbid waiting.
    const refusal = this.#refusal;
    if (refusal) this.#fail(refusal);
  }

  #ended(): void {
    const { lastError } = this;
    this.#fail(lastError instanceof Error ? lastError : new Error("The client is closed"));
    // A caller's object that is reopened is connected to at its next use.
    if (this.isLasting) this.isClosed = true;
    else if (this.#source instanceof Chain) this.#isOpen = false;
    for (const events of [...this.listeners]) events.ended();
  }

  #fail(error: Error): void {
    this.pipe.fail(error);
    for (const { reject } of [...this.#waiting]) reject(error);
    this.#waiting.clear();
  }

  /**
   * RACE: Sentinel has turned our master into a replica, and is about to announce it. Until then
   * another connection may lead there too. And the announcement may not reach the caller's object.
   */
  #isElsewhere(error: Error): boolean {
    if (this.kind !== "sentinel" || !isOfReplica(error)) return false;
    this.#origin.refused?.();
    this.#source.replace(error);
    return true;
  }
}
