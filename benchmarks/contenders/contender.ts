/** A lock library, as the benchmarks see it. One file for each; the registry is `all.ts`. */
export interface Contender {
  /** As in tables and charts: "Holdfast lock". */
  readonly title: string;
  /** How its waiters learn that the lock is free. */
  readonly waits: Waits;
  /**
   * How many callers it lets in at a time, besides a writer, that is alone; Infinity: as many as
   * come. Left out: 1, as locks do.
   */
  readonly room?: number;
  /**
   * Opens what one process opens once: connections, a client. All options are the library's
   * defaults unless the file says why not.
   */
  open(url: string, place: Place): Promise<Session>;
}

/** Which of how many processes this is. */
interface Place {
  readonly worker: number;
  readonly workers: number;
  /** The file URL of another commit's Holdfast; null: the present one. Other libraries have no use for it. */
  readonly library: string | null;
}

/**
 * hand-off: the next waiter is chosen and told · broadcast: all are told, one gets it · spinning,
 * polling: nobody is told.
 */
export type Waits = "hand-off" | "broadcast" | "spinning" | "polling" | "floor";

/** One process with its library. */
export interface Session {
  /**
   * Waits up to `ask.wait` ms. Null: it was not free in that time. Everything else that goes wrong
   * rejects.
   */
  acquire(name: string, ask: Ask): Promise<Release | null>;
  close(): Promise<void>;
  /**
   * Commands that this process has written, for a library that does not use ioredis, where they are
   * counted anyway.
   */
  readonly commands?: () => number;
}

export interface Ask {
  /** ms that the caller is willing to wait. */
  readonly wait: number;
  /**
   * ms to hold at most; null: the library's own way to hold for as long as the work takes
   * (watchdog, refresh), else its longest default.
   */
  readonly lease: number | null;
  /** Does the caller want to be alone? Asked only of a contender that lets readers in together. */
  readonly isWriter: boolean;
}

export type Release = () => Promise<unknown>;
