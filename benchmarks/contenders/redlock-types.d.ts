// redlock ships types, but its `exports` do not name them: tsc finds none. This is what is used of them.
declare module "redlock" {
  import type { Redis } from "ioredis";

  // biome-ignore lint/style/noDefaultExport: it has one.
  export default class Redlock {
    constructor(clients: Iterable<Redis>);
    acquire(
      resources: string[],
      duration: number,
      settings?: { retryCount: number },
    ): Promise<{ release(): Promise<unknown> }>;
    /** Extends the lock while the body runs. */
    using<T>(resources: string[], duration: number, body: (signal: AbortSignal) => Promise<T>): Promise<T>;
    quit(): Promise<void>;
  }
  /** No majority said yes. */
  export class ExecutionError extends Error {
    readonly attempts: readonly Promise<{ readonly votesAgainst: ReadonlyMap<Redis, Error> }>[];
  }
  /** The vote of a server where somebody else holds the lock. */
  export class ResourceLockedError extends Error {}
}
