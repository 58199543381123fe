// What the programs use of three libraries whose own types cannot be found: redlock 4 and bluebird
// have none, and the package.json of redlock 5 does not name its own.

declare module "bluebird" {
  export default class Bluebird<T> extends Promise<T> {
    static override resolve<T>(value: T | PromiseLike<T>): Bluebird<T>;
    override catch<U>(listener: (error: unknown) => U): Bluebird<T | U>;
    override finally(listener: () => unknown): Bluebird<T>;
    tap(listener: (value: T) => unknown): Bluebird<T>;
    nodeify(callback: ((error: unknown, value?: T) => void) | undefined): Bluebird<T>;
  }
}

declare module "redlock4" {
  import type Bluebird from "bluebird";

  export type Callback = (error: unknown, lock?: unknown) => void;

  export interface Options {
    retryCount?: number;
    retryDelay?: number;
  }

  export interface Lock {
    unlock(): Bluebird<void>;
    extend(ttl: number): Bluebird<Lock>;
  }

  export default class Redlock {
    static LockError: new (
      message: string,
      attempts: number,
    ) => Error;
    constructor(clients: readonly unknown[], options?: Options);
    lock(resource: string | string[], ttl: number): Bluebird<Lock>;
    unlock(lock: Lock, callback?: Callback): Bluebird<void>;
    extend(lock: Lock, ttl: number, callback?: Callback): Bluebird<Lock>;
    _lock(
      resource: string | string[],
      value: string | null,
      ttl: number,
      options: Options | Callback,
      callback?: Callback,
    ): Bluebird<Lock>;
  }
}

declare module "redlock5" {
  export interface Settings {
    readonly retryCount: number;
    readonly retryDelay: number;
    readonly automaticExtensionThreshold: number;
  }

  export interface Lock {
    release(): Promise<unknown>;
    extend(duration: number): Promise<Lock>;
  }

  export class ExecutionError extends Error {
    constructor(message: string, attempts: readonly unknown[]);
  }

  export default class Redlock {
    readonly settings: Settings;
    constructor(clients: Iterable<unknown>, settings?: Partial<Settings>);
    acquire(resources: string[], duration: number, settings?: Partial<Settings>): Promise<Lock>;
    extend(lock: Lock, duration: number, settings?: Partial<Settings>): Promise<Lock>;
    release(lock: Lock, settings?: Partial<Settings>): Promise<unknown>;
    using<T>(resources: string[], duration: number, body: (signal: AbortSignal) => Promise<T>): Promise<T>;
    on(event: "error", listener: (error: Error) => void): this;
  }
}
