// What the programs use of two libraries whose own types cannot be found: redlock 4 has none, and
// the package.json of redlock 5 does not name its own.

declare module "redlock4" {
  export default class Redlock {
    constructor(clients: readonly unknown[], options?: { retryCount?: number; retryDelay?: number });
    lock(resource: string, ttl: number): Promise<{ unlock(): Promise<void> }>;
  }
}

declare module "redlock5" {
  export default class Redlock {
    constructor(
      clients: readonly unknown[],
      settings?: { retryCount?: number; automaticExtensionThreshold?: number },
    );
    using<T>(resources: string[], duration: number, body: (signal: AbortSignal) => Promise<T>): Promise<T>;
    on(event: "error", listener: (error: Error) => void): this;
  }
}
