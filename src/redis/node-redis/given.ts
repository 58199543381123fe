import { subscribe, unsubscribe } from "node:diagnostics_channel";
import { NOT_CONNECTED, whyRefused } from "./chain.ts";
import { type Client, isOfCommand, isReply, listenTo, printUnheard } from "./client.ts";
import { Lifetime } from "./lifetime.ts";
import type { Source, SourceEvents } from "./source.ts";

/** A channel of `node:diagnostics_channel`. */
const SOCKET_CHANGED = "node-redis:connection:handoff";

/**
 * The caller's client. It is changed only by a few listeners; the caller connects and closes it.
 */
export class Given implements Source {
  readonly #client: Client;
  readonly #lifetime: Lifetime;
  /** The number of the socket on which replies go to the wrong commands. */
  #brokenEpoch = Number.NaN;
  #stop: () => void = () => {};

  constructor(client: Client) {
    this.#client = client;
    this.#lifetime = new Lifetime(client);
  }

  get client(): Client | null {
    return this.#client.isReady && !this.#isBroken ? this.#client : null;
  }

  get state(): "ready" | "away" | "ended" {
    if (this.client) return "ready";
    return this.#lifetime.isOver ? "ended" : "away";
  }

  get status(): string {
    const { state } = this;
    if (state !== "away") return state === "ended" ? "end" : state;
    if (this.#isBroken) return "out of step";
    return this.#client.isOpen ? "connecting" : "wait";
  }

  get refusal(): Error | null {
    if (this.client) return null;
    if (this.#isBroken) return new Error("The client gives replies to the wrong commands");
    if (!this.#client.isOpen)
      return new Error(this.state === "ended" ? "The client is closed" : NOT_CONNECTED);
    return this.#client.options?.disableOfflineQueue
      ? new Error("The client is offline (disableOfflineQueue is true)")
      : null;
  }

  open(events: SourceEvents): void {
    let isEnded = false;
    let wasReady = this.#client.isReady;
    const end = (): void => {
      if (!isEnded) events.ended();
      isEnded = true;
    };
    const stop = listenTo(this.#client, {
      ready: () => {
        isEnded = false;
        wasReady = true;
        this.#lifetime.wasOpened();
        events.ready();
      },
      error: (error: unknown) => {
        printUnheard(this.#client, error);
        if (this.#client.isReady) {
          if (isOfCommand(error) || this.#isBroken) return;
          // RACE: a listener has thrown, such as one for messages that the application receives on
          // this client. node-redis then drops the replies that it had not read, and continues:
          // each later reply goes to a command sent before its own. So no reply counts until there
          // is another socket, including those that it has read and not delivered.
          this.#brokenEpoch = this.#client.socketEpoch;
          events.lost(outOfStep(error));
          return;
        }
        isReply(error);
        const why = wasReady ? error : whyRefused(error);
        wasReady = false;
        events.lost(why);
        // It gives up: version 5 reports that in no other way.
        if (!this.#client.isOpen) end();
      },
      end: () => {
        events.lost(null);
        end();
      },
    });
    // RACE: the server says that it moves (MOVING), and node-redis changes to a socket to another
    // server, without any event: votes of a quorum would count that another process gives. It
    // publishes to this channel before it writes anything to the new socket. Copies of the client
    // (`withTypeMapping()`) have its id.
    const changed = (message: unknown): void => {
      if ((message as { clientId?: unknown }).clientId !== this.#client._clientId) return;
      events.lost(null);
      if (this.client) events.ready();
    };
    subscribe(SOCKET_CHANGED, changed);
    this.#stop = () => {
      stop();
      unsubscribe(SOCKET_CHANGED, changed);
    };
  }

  close(): void {
    this.#stop();
  }

  replace(): boolean {
    return false;
  }

  get #isBroken(): boolean {
    return this.#client.isReady && this.#client.socketEpoch === this.#brokenEpoch;
  }
}

const outOfStep = (error: unknown): Error =>
  new Error(
    `an error was thrown while node-redis read replies: destroy() this client and connect() it again (${error instanceof Error ? error.message : error})`,
    { cause: error },
  );
