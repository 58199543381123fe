export type Listener = (message: string) => void;

/** A channel that somebody listens to, or waits to hear. */
export class Channel {
  readonly listeners = new Set<Listener>();
  /** SUBSCRIBE is on its way; every message is heard from now on. */
  state: "unheard" | "asked" | "heard" = "unheard";
  /**
   * Messages may be missed that somebody counts on: it was heard before, or a caller has given up
   * waiting until it is.
   */
  isMissed = false;
  /** Some waiters may count on it, and do not ask for it again. */
  wasHeard = false;
  #waiting: Promise<void> | null = null;
  #caller: { resolve: () => void; reject: (error: unknown) => void } | null = null;

  /** Resolves when it is heard; shared by all that wait at the same time. */
  wait(): Promise<void> {
    this.#waiting ??= new Promise((resolve, reject) => {
      this.#caller = { resolve, reject };
    });
    return this.#waiting;
  }

  heard(): void {
    this.state = "heard";
    this.wasHeard = true;
    this.#caller?.resolve();
    this.#over();
  }

  /** Not heard any more. Its callers wait on: it is subscribed again when the connection is back. */
  forgotten(): void {
    this.isMissed ||= this.state === "heard";
    this.state = "unheard";
  }

  lost(error: unknown): void {
    this.forgotten();
    this.#caller?.reject(error);
    this.#over();
  }

  #over(): void {
    this.#waiting = null;
    this.#caller = null;
  }
}
