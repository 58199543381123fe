/** What is known of one server. `null`: it did not say, or its user may not ask. */
export interface CheckedServer {
  /** Where the connection leads: "127.0.0.1:6379". */
  readonly place: string;
  /** "7.0.15"; of another server than Redis with its name: "valkey 8.1.0". */
  readonly version: string | null;
  /** How long it took to ask the server, in ms. */
  readonly roundTrip: number | null;
  /** `maxmemory-policy`. */
  readonly evictionPolicy: string | null;
  /** How many replicas are connected to it. */
  readonly replicas: number | null;
  /** By how many ms its clock is ahead of this process's; negative: behind. */
  readonly clockAhead: number | null;
  /** What is wrong with it, in sentences. */
  readonly problems: readonly string[];
}

/** What `check` found. */
export interface Check {
  /** Can locks be taken and handed over as the docs promise? Of several masters: by a majority of them. */
  readonly ok: boolean;
  /** What is wrong, in sentences that say what to do; those of the servers included. */
  readonly problems: readonly string[];
  /** What could not be known, and why. It does not make `ok` false. */
  readonly unknown: readonly string[];
  /** The longest round trip to a server, in ms; null: none answered. */
  readonly roundTrip: number | null;
  /** The server; in Cluster the primaries; of several masters each of them, in order. */
  readonly servers: readonly CheckedServer[];
}
