import type { Direction } from "./gate.ts";
import { setsUp, subscribes } from "./matches.ts";

/**
 * Which connections: "subscribers" are those that have ever sent a SUBSCRIBE, "commands" all
 * others.
 */
export type Which = "all" | "subscribers" | "commands";

export interface DelayOptions {
  /** Default: both. */
  direction?: Direction;
  /** Default: all. */
  which?: Which;
}

interface Connection {
  readonly isSubscriber: boolean;
}

/** The rules of a proxy for whole connections, later ones too. */
export class Traffic {
  partitioned: "subscribers" | "commands" | undefined;
  delay: { ms: number } & DelayOptions = { ms: 0 };

  /** Does the connection stop before this command? */
  holds(connection: Connection, command: string[]): boolean {
    if (this.partitioned === "subscribers") return connection.isSubscriber || subscribes(command);
    const isCommand = !connection.isSubscriber && !subscribes(command) && !setsUp(command);
    return this.partitioned === "commands" && isCommand;
  }

  /** By how many ms events that pass now are delayed. */
  delayOf(connection: Connection, direction: Direction): number {
    const { ms, which = "all", direction: wanted = direction } = this.delay;
    return wanted === direction && isAmong(connection, which) ? ms : 0;
  }
}

export function isAmong(connection: Connection, which: Which): boolean {
  return which === "all" || connection.isSubscriber === (which === "subscribers");
}
