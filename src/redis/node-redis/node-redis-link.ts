import { clocks } from "../../util/clock.ts";
import type { LinkEvents } from "../driver.ts";
import type { Pipe } from "./pipe.ts";
import { Sending } from "./sending.ts";

/** What a link to one server and one to a Cluster have in common: their listeners and their pipe. */
export abstract class NodeRedisLink {
  readonly library = "node-redis";
  readonly Call = Sending;
  lastError: unknown = null;
  /** Was it opened here, so that `close` closes it? */
  protected readonly isLasting: boolean;
  protected readonly listeners = new Set<LinkEvents>();
  protected isClosed = false;
  /** When its connection was last lost. */
  protected lostAt = Number.NEGATIVE_INFINITY;
  protected abstract readonly pipe: Pipe;
  abstract readonly state: "ready" | "away" | "ended";

  constructor(isLasting: boolean) {
    this.isLasting = isLasting;
  }

  /** It is used from now on. */
  protected abstract begin(): void;
  /** Releases what is of no use when no command is under way and no listener is left. */
  protected abstract rest(): void;

  get readyUntil(): number {
    return this.state === "ready" ? clocks.mono.now() : this.lostAt;
  }

  get heldUntil(): number {
    return this.pipe.heldUntil;
  }

  get holdsBack(): boolean {
    return this.pipe.holdsBack;
  }

  on(events: LinkEvents): () => void {
    this.listeners.add(events);
    this.begin();
    return () => {
      if (this.listeners.delete(events)) this.rest();
    };
  }

  /** node-redis schedules its writes itself, and cannot be hurried. */
  flush(): void {}
}
