// redlock 5 ships types, but its `exports` do not name them; redlock 4 has none. This is what is
// used of them.
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

declare module "redlock4" {
  import type { Redis } from "ioredis";

  // biome-ignore lint/style/noDefaultExport: it has one.
  export default class Redlock {
    constructor(
      clients: Redis[],
      options?: { retryCount?: number; retryDelay?: number; retryJitter?: number },
    );
    on(event: "clientError", listener: (error: Error) => void): this;
    lock(resource: string, ttl: number): Promise<{ unlock(): Promise<unknown> }>;
    lockWithOptions(
      resource: string,
      ttl: number,
      options: { retryCount: number },
    ): Promise<{ unlock(): Promise<unknown> }>;
    quit(): Promise<void>;
  }
}
