/** The findings about one server. `null`: it did not say, or its user lacks the right to ask. */
export interface CheckedServer {
  /** Where the connection leads: "127.0.0.1:6379". */
  readonly place: string;
  /** "7.0.15"; for another server than Redis with its name: "valkey 8.1.0". */
  readonly version: string | null;
  /** How long it took to ask the server, in ms. */
  readonly roundTrip: number | null;
  /** `maxmemory-policy`. */
  readonly evictionPolicy: string | null;
  /** How many replicas are connected to it. */
  readonly replicas: number | null;
  /** How many ms its clock is ahead of this process's; negative: behind. */
  readonly clockAhead: number | null;
  /** Its problems, in sentences. */
  readonly problems: readonly string[];
}

/** What `check` found. */
export interface Check {
  /**
   * Can locks be taken and handed over as the docs promise? With several masters: by a majority of
   * them.
   */
  readonly ok: boolean;
  /** The problems, in sentences that say what to do; those of the servers included. */
  readonly problems: readonly string[];
  /**
   * What may cost locks later, as a restart without persistence does, or memory that is nearly full.
   * It does not make `ok` false.
   */
  readonly warnings: readonly string[];
  /** What could not be determined, and why. It does not make `ok` false. */
  readonly unknown: readonly string[];
  /** The longest round trip to a server, in ms; null: none answered. */
  readonly roundTrip: number | null;
  /** The server; in Cluster the primaries; with several masters each of them, in order. */
  readonly servers: readonly CheckedServer[];
}
