import { clientTimer } from "../../util/client-timer.ts";
import { detached } from "../../util/detached.ts";
import { clearTimeout } from "../../util/real-timers.ts";
import { type Client, type Credentials, destroy, listenTo, type NodeAddress } from "./client.ts";
import { Lifetime } from "./lifetime.ts";
import type { Source, SourceEvents } from "./source.ts";

/**
 * How long connecting and the handshake may take, in ms. node-redis limits only connecting, and a
 * suspended server answers no handshake.
 */
const HANDSHAKE = 10_000;

/** Options of our own clients, in addition to the caller's. */
const OVERRIDES = {
  // The other options contain the address, and this option would override it.
  url: undefined,
  disableOfflineQueue: false,
  commandsQueueMaxLength: undefined,
  // A timer that keeps the process alive.
  pingInterval: undefined,
  clientSideCache: undefined,
  emitInvalidate: false,
  // It would silently move the client to another server, and WAIT to another one than the writes.
  maintNotifications: "disabled",
  readonly: false,
};

/** The caller's object that clients are made from. */
export interface Owner {
  readonly isOpen: boolean;
  /**
   * `moved`: its clients lead elsewhere now; `closed`: it was closed, as far as it reports that.
   */
  watch(moved: () => void, closed: () => void): () => void;
}

/**
 * A client with the current options of this one, perhaps to another address and with other
 * credentials, which is never used after its connection was lost.
 */
export function copyOf(client: Client, to: NodeAddress = {}, credentials: Credentials = {}): Client {
  // Any number works: the client is destroyed before it retries. `false` would leave it in version
  // 5's list of all clients forever, because there a client that has given up cannot be destroyed.
  const reconnectStrategy = (): number => 0;
  // No PINGs are sent, so nothing is read while it is idle.
  const socket = { ...client.options?.socket, ...to, socketTimeout: undefined, reconnectStrategy };
  return client.duplicate({ ...OVERRIDES, ...credentials, socket });
}

/**
 * A connection of our own. Each time it connects with a new client, because a reconnected client of
 * node-redis is worse than a new one:
 *
 * - `destroy()` and `connect()` while it tries to reconnect leave two sockets connecting;
 * - it keeps the process alive while it waits to reconnect;
 * - it resubscribes the channels that it had when the connection was lost, and reports a channel
 *   that it believes to have as subscribed at once, connected or not.
 *
 * Keeps no process alive.
 */
export class Chain implements Source {
  client: Client | null = null;
  readonly #make: () => Client | Promise<Client>;
  readonly #pause: (tries: number, error: unknown) => number | null;
  readonly #owner: Owner | null;
  readonly #lifetime: Lifetime | null;
  /** The client that is ready, or connects. */
  #current: Client | null = null;
  /** Is it creating its socket? */
  #isConnecting = false;
  #events: SourceEvents | null = null;
  /** The caller's object while a client is requested from it. */
  #asked: object | null = null;
  #stop: () => void = () => {};
  #isEnded = false;
  #tries = 0;
  #timer: NodeJS.Timeout | undefined;

  /**
   * `pause`: how long to wait before another try, in ms; null: it ends. `owner`: the caller's
   * object that `make` requests a client from; without it none can be made.
   */
  constructor(
    make: () => Client | Promise<Client>,
    pause: (tries: number, error: unknown) => number | null,
    owner: Owner | null = null,
  ) {
    this.#make = make;
    this.#pause = pause;
    this.#owner = owner;
    this.#lifetime = owner && new Lifetime(owner);
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
    return this.#lifetime?.isOver ?? false;
  }

  open(events: SourceEvents): void {
    this.#events = events;
    this.#isEnded = false;
    this.#stop();
    this.#stop = this.#owner?.watch(this.#moved, this.#closed) ?? (() => {});
    this.#connect();
  }

  close(): void {
    this.#events = null;
    this.#stop();
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
        // Waits while the caller's object has no client for us.
        const asked = {};
        this.#asked = asked;
        made.then(
          (client) => (this.#asked === asked ? this.#use(client) : destroy(client)),
          (error) => this.#asked === asked && this.#failed(error),
        );
      } catch (error) {
        this.#failed(error);
      }
    });
  }

  /**
   * RACE: the former master may hang and close no connection. If it is gone instead, the pause
   * before the next try has grown, although the client could connect to the new master now.
   */
  readonly #moved = (): void => {
    clearTimeout(this.#timer);
    this.#tries = 0;
    if (this.#current) {
      this.#leave();
      this.#failed(new Error("Sentinel names another master"), true);
    } else this.#connect();
  };

  readonly #closed = (): void => {
    if (this.#current) this.#lost(this.#current, CLOSED());
    else this.#failed(CLOSED());
  };

  #use(client: Client): void {
    this.#asked = null;
    this.#lifetime?.wasOpened();
    this.#current = client;
    this.#isConnecting = true;
    const lost = (error: unknown): void => this.#lost(client, error);
    // RACE: a client that is destroyed while it creates its socket connects all the same, and stays
    // forever. So this waits until it has a socket, or has failed to get one.
    const settled = (): void => {
      if (this.#current === client) this.#isConnecting = false;
      else destroy(client);
    };
    listenTo(client, {
      connect: settled,
      ready: () => this.#ready(client),
      error: (error) => {
        settled();
        lost(error);
      },
      end: () => lost(CLOSED()),
    });
    client.unref();
    this.#timer = clientTimer(() => lost(new Error("the handshake was not answered")), HANDSHAKE);
    // It may resolve without being ready if it was destroyed.
    client.connect().then(() => client.isReady || lost(CLOSED()), lost);
  }

  #ready(client: Client): void {
    if (this.#current !== client) return;
    clearTimeout(this.#timer);
    this.#tries = 0;
    this.client = client;
    this.#events?.ready();
  }

  /** Any connection error of node-redis ends it, including a reply that it could not parse. */
  #lost(client: Client, error: unknown): void {
    if (this.#current !== client) return;
    const wasReady = this.client === client;
    // RACE: while it is still open. Afterwards it would retry by itself.
    this.#leave();
    this.#failed(wasReady ? error : whyRefused(error));
  }

  #leave(): void {
    const client = this.#current;
    clearTimeout(this.#timer);
    this.#current = null;
    this.#asked = null;
    this.client = null;
    if (client && !this.#isConnecting) destroy(client);
  }

  /** `isNow`: the next try begins without a pause. */
  #failed(error: unknown, isNow = false): void {
    const events = this.#events;
    clearTimeout(this.#timer);
    this.#asked = null;
    if (!events) return;
    events.lost(this.#isOrphaned ? CLOSED() : error);
    if (this.#events !== events) return;
    const pause = this.#isOrphaned ? null : this.#pause(++this.#tries, error);
    if (pause === null) {
      this.#isEnded = true;
      this.#stop();
      events.ended();
    } else {
      this.#timer = clientTimer(() => this.#connect(), isNow ? 0 : pause);
    }
  }
}

const CLOSED = (): Error => new Error("The client is closed");

export const NOT_CONNECTED =
  "the node-redis client is not connected: await its connect() before its locks are used";

/**
 * The server ended a connection before it was ready: a clue that node-redis's own message does not
 * give.
 */
export function whyRefused(error: unknown): unknown {
  if (!(error instanceof Error) || error.message !== "Socket closed unexpectedly") return error;
  return new Error("the connection was closed before it was ready (ECONNRESET)", { cause: error });
}

/** The pause for message connections, and for those without such an option of the caller's. */
export const soon = (tries: number): number => Math.min(tries * 50, 2_000);

/** The pauses of the caller's `reconnectStrategy`, as node-redis understands it. */
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
