import type { Socket } from "node:net";
import { type Direction, Gate } from "./gate.ts";
import { ReplyPairing } from "./reply-pairing.ts";
import { decodeCommand, FrameReader } from "./resp.ts";

/**
 * A command whose bytes are still in the network: withheld from Redis while its client continued
 * without it, or a second copy.
 */
export interface HeldCommand {
  readonly command: string[];
  /**
   * Sends the bytes to Redis, on the old connection or on another one; resolves when Redis has
   * answered them.
   */
  deliver(): Promise<void>;
}

/** The fault to inject into one command; `happened` is called when it has happened. */
export type Fault =
  | { kind: "drop reply" | "drop command" | "stall"; happened(command: string[]): void }
  | { kind: "hold command"; happened(held: HeldCommand): void }
  | { kind: "copy command"; happened(copy: HeldCommand): void };

interface Hooks {
  /** Called once for every command, in the order of the stream. */
  inspect(connection: number, command: string[]): Fault | undefined;
  /** Does the connection freeze before this command? */
  holds(connection: ProxyConnection, command: string[]): boolean;
  /** Sends a command to the same server on another connection. */
  replay(frame: Buffer): Promise<void>;
  /** By how many ms events that come now are delayed. */
  delay(connection: ProxyConnection, direction: Direction): number;
  closed(): void;
}

/**
 * One client connection and its counterpart on the server's side.
 *
 * | state    | client socket | server socket | from the client | from the server                                |
 * |----------|---------------|---------------|-----------------|------------------------------------------------|
 * | open     | open          | open          | passed on       | passed on                                      |
 * | draining | open          | open          | ignored         | passed on; after the last reply → kept, closed |
 * | kept     | closed        | open          | nothing comes   | ignored; after the late reply → closed         |
 * | closed   | closed        | closed        |                 |                                                |
 *
 * `draining` is there so that a fault hits the chosen command alone: the commands before it in the same
 * pipeline are answered first.
 */
export class ProxyConnection {
  readonly id: number;
  readonly #client: Socket;
  readonly #server: Socket;
  readonly #hooks: Hooks;
  readonly #requests = new FrameReader();
  readonly #replies = new FrameReader();
  readonly #pairing = new ReplyPairing();
  #state: "open" | "draining" | "kept" | "closed" = "open";
  #whenDrained: () => void = () => {};
  #whenStrandedGone: () => void = () => this.destroy();
  readonly #gate: Gate;
  #stranded = false;

  constructor(id: number, client: Socket, server: Socket, hooks: Hooks) {
    this.id = id;
    this.#client = client;
    this.#server = server;
    this.#hooks = hooks;
    this.#gate = new Gate((direction) => hooks.delay(this, direction));
    const toServer = (event: () => void) => this.#gate.pass("to server", event);
    const toClient = (event: () => void) => this.#gate.pass("to client", event);
    client.on("data", (chunk) => toServer(() => this.#fromClient(this.#requests.read(chunk))));
    server.on("data", (chunk) => toClient(() => this.#fromServer(chunk)));
    client.on("close", () => toServer(() => this.#clientClosed()));
    server.on("close", () => toClient(() => this.#serverClosed()));
    // "close" follows an error and is all that matters here.
    for (const socket of [client, server]) socket.on("error", () => {});
  }

  /** Is a client at the other end? */
  get isLive(): boolean {
    return (this.#state === "open" || this.#state === "draining") && !this.#stranded;
  }

  /** Has it ever sent a SUBSCRIBE? */
  get isSubscriber(): boolean {
    return this.#pairing.isSubscriber;
  }

  /**
   * From now on nothing passes, in either direction, not even the close of one side.
   */
  freeze(): void {
    this.#gate.freeze();
  }

  /**
   * All events pass that came in the meantime, in order; also from a side that is closed by now.
   */
  thaw(): void {
    this.#gate.thaw();
  }

  /**
   * The client's side closes; bytes that it has sent, and the server has not received, are kept.
   * The returned function sends them, and resolves when Redis has answered all.
   */
  strand(): () => Promise<void> {
    this.freeze();
    this.#stranded = true;
    this.#client.end(); // not destroy(): bytes that are under way to this side still count
    return () =>
      new Promise((resolve, reject) => {
        this.#whenStrandedGone = () => {
          if (this.#server.destroyed) reject(new Error("Redis closed the connection before it answered."));
          else resolve();
          this.destroy();
        };
        this.thaw();
      });
  }

  destroy(): void {
    this.#gate.clear();
    this.#client.destroy();
    this.#server.destroy();
    this.#become("closed");
  }

  #fromClient(frames: Buffer[]): void {
    this.#server.cork();
    for (const [index, frame] of frames.entries()) {
      if (this.#state !== "open") break;
      const command = decodeCommand(frame);
      if (!this.#stranded && this.#hooks.holds(this, command)) {
        this.#gate.freezeBefore(() => this.#fromClient(frames.slice(index)));
        break;
      }
      const fault = this.#hooks.inspect(this.id, command);
      if (fault?.kind === "stall") {
        this.#gate.freezeBefore(() => this.#fromClient(frames.slice(index)));
        fault.happened(command);
        break;
      }
      if (fault === undefined) this.#send(frame, command);
      else if (fault.kind === "copy command") this.#copy(frame, command, fault.happened);
      else if (fault.kind === "hold command") this.#drain(() => this.#keep(frame, command, fault.happened));
      else if (fault.kind === "drop command") this.#drain(() => this.#drop(command, fault.happened));
      else this.#send(frame, command, () => this.#drop(command, fault.happened));
    }
    this.#server.uncork();
  }

  #send(frame: Buffer, command: string[], swallow?: () => void): void {
    this.#pairing.sent(command, swallow);
    this.#server.write(frame);
  }

  #fromServer(chunk: Buffer): void {
    this.#client.cork();
    for (const frame of this.#replies.read(chunk)) {
      if (this.#state === "closed") return;
      const swallow = this.#pairing.answeredBy(frame)?.swallow;
      if (swallow !== undefined) swallow();
      else if (this.isLive) this.#client.write(frame);
    }
    this.#client.uncork();
    this.#checkDrained();
  }

  #drain(whenDrained: () => void): void {
    this.#become("draining");
    this.#whenDrained = whenDrained;
    this.#checkDrained();
  }

  #checkDrained(): void {
    if (this.#state === "draining" && this.#pairing.isEmpty) this.#whenDrained();
  }

  #copy(frame: Buffer, command: string[], happened: (copy: HeldCommand) => void): void {
    this.#send(frame, command);
    const copy = Buffer.from(frame); // not the chunk that it came in
    happened({ command, deliver: () => this.#hooks.replay(copy) });
  }

  #drop(command: string[], happened: (command: string[]) => void): void {
    this.#client.destroySoon(); // not destroy(): replies to earlier commands are on their way
    this.#server.destroy();
    this.#become("closed");
    happened(command);
  }

  #keep(frame: Buffer, command: string[], happened: (held: HeldCommand) => void): void {
    this.#client.destroySoon();
    this.#become("kept");
    const deliver = () =>
      new Promise<void>((resolve, reject) => {
        if (this.#server.destroyed) {
          reject(new Error(`The old connection of ${command[0]} is closed: nothing can be delivered on it.`));
          return;
        }
        this.#server.once("close", () => reject(new Error(`Redis closed before it answered ${command[0]}.`)));
        this.#send(frame, command, () => {
          resolve();
          this.destroy();
        });
      });
    happened({ command, deliver });
  }

  #clientClosed(): void {
    if (this.#state !== "open") return;
    if (this.#stranded) {
      this.#drain(this.#whenStrandedGone);
      return;
    }
    this.#server.destroySoon(); // bytes that the client has sent still go out
    this.#become("closed");
  }

  #serverClosed(): void {
    if (this.#stranded) this.#whenStrandedGone();
    this.#pairing.clear();
    this.#checkDrained();
    this.#client.destroySoon();
    this.#become("closed");
  }

  #become(state: "draining" | "kept" | "closed"): void {
    if (this.#state === "closed") return;
    this.#state = state;
    if (state === "closed") this.#hooks.closed();
  }
}
