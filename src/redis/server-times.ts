/** What a server said its time was, in µs, and when it was read on our monotonic clock. */
interface ServerTime {
  readonly micros: number;
  readonly at: number;
}

/** The times that servers have told, by address. In Cluster the servers are several; a single one has the address "". */
export class ServerTimes {
  readonly #told = new Map<string, ServerTime>();
  /** The last one of all. */
  #latest: ServerTime | undefined;

  tell(address: string, micros: number): void {
    this.#latest = { micros, at: performance.now() };
    this.#told.set(address, this.#latest);
  }

  /**
   * Until when, in the server's time in ms, a command that is sent now may be executed: later its caller has given up.
   * A little early rather than late; 0: no server has told its time yet. `within`: when the caller gives up, in ms.
   *
   * RACE: a node stands still while this client sends it commands for slots that are new to it, and the process dies. By the
   * slot's own last reply there would be no time to name, and the node would give the locks to a dead process. All slots of
   * a node have its clock. A node that has never answered is taken to have the clock of the others: where that is wrong, it
   * answers "stale" and tells its own.
   */
  notAfter(address: string, within: number): number {
    const server = this.#told.get(address) ?? this.#latest;
    return server ? Math.ceil(server.micros / 1_000 + performance.now() - server.at + within) : 0;
  }
}
