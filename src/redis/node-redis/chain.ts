import { detached } from "../../util/detached.ts";
import { clearTimeout, setTimeout } from "../../util/real-timers.ts";
import { type Client, destroy, listenTo, type NodeAddress } from "./client.ts";
import type { Source, SourceEvents } from "./source.ts";

/**
 * How long connecting and the handshake may take, in ms. node-redis bounds the first only, and a
 * server that stands still answers no handshake.
 */
const HANDSHAKE = 10_000;

/** What clients of our own are made with, beside the caller's options. */
const OVERRIDES = {
  // What it says stands in the other options, and it would win over another address.
  url: undefined,
  disableOfflineQueue: false,
  commandsQueueMaxLength: undefined,
  // A timer that keeps the process alive.
  pingInterval: undefined,
  clientSideCache: undefined,
  emitInvalidate: false,
  readonly: false,
};

/** A client like this one, perhaps to another address, which is never used after its connection was lost. */
export function copyOf(client: Client, to: NodeAddress = {}): Client {
  // Any number will do: it is destroyed before it tries again. `false` would leave it in version 5's
  // list of all clients for ever, because there a client that has given up cannot be destroyed.
  const socket = { ...client.options?.socket, ...to, reconnectStrategy: () => 0 };
  return client.duplicate({ ...OVERRIDES, socket });
}

/**
 * A connection of our own: a client for each of its lives, because a client of node-redis that is
 * connected once more is not as good as new:
 *
 * - `destroy()` and `connect()` while it tries to reconnect has two sockets connecting at a time;
 * - it keeps the process alive while it waits to reconnect;
 * - it subscribes again to what it had when the connection was lost, and says at once that a
 *   channel is subscribed which it believes to have, connected or not.
 *
 * Keeps no process alive.
 */
export class Chain implements Source {
  client: Client | null = null;
  readonly #make: () => Client | Promise<Client>;
  readonly #pause: (tries: number, error: unknown) => number | null;
  readonly #owner: { readonly isOpen: boolean } | null;
  #wasOpen = false;
  /** The client that is ready, or connects. */
  #current: Client | null = null;
  #events: SourceEvents | null = null;
  #isEnded = false;
  #tries = 0;
  #timer: NodeJS.Timeout | undefined;

  /**
   * `pause`: how long to wait before another try, in ms; null: it ends. `owner`: the caller's object
   * that `make` asks for a client; without it none can be made.
   */
  constructor(
    make: () => Client | Promise<Client>,
    pause: (tries: number, error: unknown) => number | null,
    owner: { readonly isOpen: boolean } | null = null,
  ) {
    this.#make = make;
    this.#pause = pause;
    this.#owner = owner;
  }

  get state(): "ready" | "away" | "ended" {
    if (this.#isEnded || this.#isOrphaned) return "ended";
    return this.client?.isReady ? "ready" : "away";
  }

  get status(): string {
    const { state } = this;
    if (state === "ended") return "end";
    if (state === "ready") return "ready";
    return this.#tries > 0 && !this.#current ? "reconnecting" : "connecting";
  }

  get refusal(): Error | null {
    if (this.state === "ended") return new Error("The client is closed");
    return this.#owner && !this.#owner.isOpen ? new Error(NOT_CONNECTED) : null;
  }

  /** Was the caller's object closed? */
  get #isOrphaned(): boolean {
    if (!this.#owner) return false;
    this.#wasOpen ||= this.#owner.isOpen;
    return this.#wasOpen && !this.#owner.isOpen;
  }

  open(events: SourceEvents): void {
    this.#events = events;
    this.#isEnded = false;
    this.#connect();
  }

  close(): void {
    this.#events = null;
    clearTimeout(this.#timer);
    this.#leave();
  }

  replace(error: Error): boolean {
    if (!this.client) return false;
    this.#lost(this.client, error);
    return true;
  }

  #connect(): void {
    detached(() => {
      try {
        const made = this.#make();
        if (!(made instanceof Promise)) return this.#use(made);
        // While the caller's object has no client for us, it is awaited.
        const events = this.#events;
        made.then(
          (client) => (this.#events === events && events ? this.#use(client) : destroy(client)),
          (error) => this.#events === events && this.#failed(error),
        );
      } catch (error) {
        this.#failed(error);
      }
    });
  }

  #use(client: Client): void {
    this.#current = client;
    const lost = (error: unknown): void => this.#lost(client, error);
    listenTo(client, { ready: () => this.#ready(client), error: lost, end: () => lost(CLOSED()) });
    client.unref();
    this.#timer = setTimeout(() => lost(new Error("the handshake was not answered")), HANDSHAKE).unref();
    // It may resolve without being ready, where it was destroyed.
    client.connect().then(() => client.isReady || lost(CLOSED()), lost);
  }

  #ready(client: Client): void {
    if (this.#current !== client) return;
    clearTimeout(this.#timer);
    this.#tries = 0;
    this.client = client;
    this.#events?.ready();
  }

  /** Whatever node-redis calls an error of a connection is its end: also what it could not read. */
  #lost(client: Client, error: unknown): void {
    if (this.#current !== client) return;
    const wasReady = this.client === client;
    // RACE: while it is open still. Afterwards it would try again by itself.
    this.#leave();
    this.#failed(wasReady ? error : whyRefused(error));
  }

  #leave(): void {
    const client = this.#current;
    clearTimeout(this.#timer);
    this.#current = null;
    this.client = null;
    if (client) destroy(client);
  }

  #failed(error: unknown): void {
    const events = this.#events;
    if (!events) return;
    events.lost(this.#isOrphaned ? CLOSED() : error);
    if (this.#events !== events) return;
    const pause = this.#isOrphaned ? null : this.#pause(++this.#tries, error);
    if (pause === null) {
      this.#isEnded = true;
      events.ended();
    } else {
      this.#timer = detached(() => setTimeout(() => this.#connect(), pause).unref());
    }
  }
}

const CLOSED = (): Error => new Error("The client is closed");

export const NOT_CONNECTED =
  "the node-redis client is not connected: await its connect() before its locks are used";

/** The server ended a connection that was not ready: node-redis does not say that this tells something. */
export function whyRefused(error: unknown): unknown {
  if (!(error instanceof Error) || error.message !== "Socket closed unexpectedly") return error;
  return new Error("the connection was closed before it was ready (ECONNRESET)", { cause: error });
}

/** The pause of connections for messages, and of those that no option of the caller's says one for. */
export const soon = (tries: number): number => Math.min(tries * 50, 2_000);

/** The pauses that the caller's `reconnectStrategy` makes, as node-redis understands it. */
export function pauseOf(client: Client): (tries: number, error: unknown) => number | null {
  const strategy = client.options?.socket?.reconnectStrategy;
  if (strategy === false) return () => null;
  if (typeof strategy === "number") return () => strategy;
  if (typeof strategy !== "function") return soon;
  return (tries, error) => {
    try {
      const pause: unknown = strategy(tries - 1, error);
      if (typeof pause === "number") return pause;
      return pause === false || pause instanceof Error ? null : soon(tries);
    } catch {
      return soon(tries);
    }
  };
}
