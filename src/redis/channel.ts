export type Listener = (message: string) => void;

/** A channel that somebody listens to, or waits to hear. */
export class Channel {
  readonly listeners = new Set<Listener>();
  /** SUBSCRIBE is on its way; every message is heard from now on. */
  state: "unheard" | "asked" | "heard" = "unheard";
  /** Messages may be missed that somebody counts on: it was heard before, or a caller has given up waiting until it is. */
  isMissed = false;
  /** Some who wait may count on it, and do not ask for it again. */
  wasHeard = false;
  readonly #callers = new Set<{ resolve: () => void; reject: (error: unknown) => void }>();

  wait(): Promise<void> {
    return new Promise((resolve, reject) => this.#callers.add({ resolve, reject }));
  }

  heard(): void {
    this.state = "heard";
    this.wasHeard = true;
    for (const { resolve } of this.#callers) resolve();
    this.#callers.clear();
  }

  /** Not heard any more. Its callers wait on: it is subscribed again when the connection is back. */
  forgotten(): void {
    this.isMissed ||= this.state === "heard";
    this.state = "unheard";
  }

  lost(error: unknown): void {
    this.forgotten();
    for (const { reject } of this.#callers) reject(error);
    this.#callers.clear();
  }
}
