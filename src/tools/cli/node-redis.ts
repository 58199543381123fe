import type * as NodeRedis from "redis";
import type { NodeRedisLike } from "../../index.ts";
import { orAbort } from "../../util/abort.ts";
import { TIMER_MAX } from "../../util/timers.ts";
import type { Open } from "./open.ts";

/** How long a Cluster or a Sentinel group may take to connect, in ms: it answered just now. */
const CONNECTING = 10_000;

/** What `createClient`, `createCluster` and `createSentinel` return. */
type Made = NodeRedisLike & {
  /** Of a client. */
  readonly isReady?: boolean;
  duplicate?(options?: object): Made;
  destroy(): unknown;
};

export const openNodeRedis =
  ({ createClient, createCluster, createSentinel, ErrorReply }: typeof NodeRedis): Open =>
  async ({ addresses, login, db, isCluster, sentinel, family }, failed, signal) => {
    const { username, password, isTls } = login;
    const report = (error: unknown): void => {
      if (error instanceof ErrorReply) failed(named(error));
      else if (error instanceof Error) failed(error);
    };
    const options = {
      // Redis takes a password without a user's name only if it asks for one.
      ...((username || password) && { username: username || "default", password }),
      socket: {
        ...(isTls && { tls: true as const }),
        family,
        reconnectStrategy: (tries: number) => Math.min(tries * 50, 2_000),
      },
    };
    const one = { ...options, database: db };
    const made: Made = isCluster
      ? createCluster({ rootNodes: addresses.map((socket) => ({ socket })), defaults: options })
      : sentinel === undefined
        ? createClient({ ...one, socket: { ...one.socket, ...addresses[0] } })
        : createSentinel({ name: sentinel, sentinelRootNodes: [...addresses], nodeClientOptions: one });
    reporting(made, report);
    let opening: Promise<unknown> | undefined;
    const use = (): Promise<unknown> => {
      opening ??= made.connect();
      return opening;
    };
    // The lock client's own connections keep no process alive, and `made` may never be connected.
    const awake = setInterval(() => {}, TIMER_MAX);
    const destroy = async (): Promise<void> => {
      try {
        await made.destroy();
      } catch {
        // It was closed, or never connected.
      }
    };
    const close = (): void => {
      clearInterval(awake);
      // RACE: a client that is destroyed while it creates its socket connects all the same, and would
      // keep this program running. Version 5 does not destroy it a second time.
      if (opening && made.isReady === false)
        for (const event of ["connect", "error"]) made.on(event, destroy);
      else void destroy();
    };
    // The lock client's connections to a Cluster or a Sentinel group begin at those of this object.
    if (isCluster || sentinel !== undefined) {
      const late = AbortSignal.timeout(CONNECTING);
      await orAbort(signal ? AbortSignal.any([signal, late]) : late, use()).catch((error: unknown) => {
        close();
        throw error;
      });
    }
    // The command that needs the connection reports why it does not come.
    return { redis: made, use: () => void use().catch(() => {}), close };
  };

/** Reports the errors of a client, and of the lock client's own copies of it. */
function reporting(made: Made, report: (error: unknown) => void): Made {
  made.on("error", report);
  const duplicate = made.duplicate?.bind(made);
  if (duplicate) made.duplicate = (options) => reporting(duplicate(options), report);
  return made;
}

/** As ioredis says it: which command has failed is only in the text. */
function named(error: Error): Error {
  const isSelect = /\bSELECT\b|DB index/i.test(error.message);
  return Object.assign(new Error(error.message), {
    name: "ReplyError",
    ...(isSelect && { command: { name: "select" } }),
  });
}
