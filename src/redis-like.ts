/**
 * What Holdfast needs of an ioredis connection. Structural, so that two copies of ioredis in one tree, or versions 5 and
 * 6, all fit.
 */
export interface RedisLike {
  readonly status: string;
  readonly options: { readonly keyPrefix?: string | undefined };
  evalsha(sha: string, numberOfKeys: number, ...args: (string | number)[]): Promise<unknown>;
  eval(script: string, numberOfKeys: number, ...args: (string | number)[]): Promise<unknown>;
  duplicate(override?: object): SubscriberLike;
  on(event: string, listener: (first: string, second: string) => void): unknown;
  off(event: string, listener: (first: string, second: string) => void): unknown;
}

/** What Holdfast needs of the connections that it opens itself. */
export interface SubscriberLike extends RedisLike {
  subscribe(...channels: string[]): Promise<unknown>;
  unsubscribe(...channels: string[]): Promise<unknown>;
  disconnect(reconnect?: boolean): void;
}
