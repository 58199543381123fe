export type Listener = (message: string) => void;

/** A channel with a listener, or with callers that wait for its subscription. */
export class Channel {
  readonly listeners = new Set<Listener>();
  /** "asked": SUBSCRIBE was sent. "heard": every message is received from now on. */
  state: "unheard" | "asked" | "heard" = "unheard";
  /**
   * A caller may have missed messages that it relies on: the channel was subscribed before, or a
   * caller has given up waiting for the subscription.
   */
  isMissed = false;
  /** Some waiters may rely on it without asking for it again. */
  wasHeard = false;
  #waiting: Promise<void> | null = null;
  #caller: { resolve: () => void; reject: (error: unknown) => void } | null = null;

  /** Resolves when it is subscribed; shared by all callers that wait at the same time. */
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

  /**
   * No longer subscribed. Its callers keep waiting: it is subscribed again when the connection is
   * back.
   */
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
