import { createLockClient, type LockClient, type LockClientOptions } from "../../index.ts";
import { visible } from "../../util/visible.ts";
import type { CommonValues } from "./command.ts";
import { UsageError } from "./exit-codes.ts";
import { library } from "./library.ts";
import type { Connection } from "./open.ts";
import { type Patience, reach, type Target } from "./reach.ts";
import { showAddress, whyNot } from "./why-not.ts";

/** A connection that this program has opened, and a lock client on it. */
export interface Connected {
  readonly locks: LockClient;
  /** For commands other than the lock client's; connects when it is first used. */
  readonly redis: Connection["redis"];
  /** "(redis.example:6379, database 2, prefix hf:)", for sentences about what is not there. */
  readonly where: string;
  close(): Promise<void>;
}

type Given = Pick<CommonValues, "redis" | "cluster" | "sentinel" | "prefix">;

/** Flags override HOLDFAST_*, which overrides REDIS_URL. */
function settings(given: Given, env = process.env) {
  const address = given.redis ?? (env.HOLDFAST_REDIS || env.REDIS_URL || undefined);
  const urls = (address ?? "redis://127.0.0.1:6379").split(",");
  const sentinel = given.sentinel ?? (env.HOLDFAST_SENTINEL || undefined);
  const isCluster = given.cluster ?? /^(1|true|yes)$/.test(env.HOLDFAST_CLUSTER ?? "");
  const prefix = given.prefix ?? env.HOLDFAST_PREFIX ?? "";
  if (isCluster && sentinel !== undefined)
    throw new UsageError("A Cluster has no sentinels: leave out --cluster or --sentinel.");
  if (urls.length > 1 && !isCluster && sentinel === undefined)
    throw new UsageError(
      "Several addresses are those of a Cluster (--cluster) or of sentinels (--sentinel <name>).",
    );
  return { nodes: urls.map(readAddress), isGuess: address === undefined, sentinel, isCluster, prefix };
}

interface Address {
  readonly host: string;
  readonly port: number;
  readonly username: string;
  readonly password: string;
  readonly db: number;
  readonly isTls: boolean;
}

/** "host:port" is enough. */
function readAddress(given: string): Address {
  const text = given.includes("://") ? given : `redis://${given}`;
  const url = URL.canParse(text) ? new URL(text) : null;
  // The text may contain a password, so it is not repeated.
  const path = /^\/?(\d*)$/.exec(url?.pathname ?? "");
  // An unreadable number must not become database 0, where no other process has this lock.
  if (url === null || !/^rediss?:$/.test(url.protocol) || url.hostname === "" || path === null || url.search)
    throw new UsageError(
      "--redis takes an address such as redis://host:6379/0, or rediss:// for TLS; after the host may come the number of a database, and nothing else.",
    );
  return {
    host: url.hostname.replace(/^\[(.*)\]$/, "$1"),
    port: Number(url.port || 6379),
    username: decoded(url.username),
    password: decoded(url.password),
    db: Number(path[1]),
    isTls: url.protocol === "rediss:",
  };
}

function decoded(text: string): string {
  try {
    return decodeURIComponent(text);
  } catch {
    throw new UsageError("A % in the user or the password of --redis is written %25.");
  }
}

/**
 * @throws ExitError if both client libraries are missing, or no Redis can be reached; UsageError for
 * addresses that make no sense; the signal's reason.
 */
export async function connect(
  given: Given,
  options: LockClientOptions = {},
  patience: Patience = {},
): Promise<Connected> {
  const { nodes, isGuess, sentinel, isCluster, prefix } = settings(given);
  const [first] = nodes as [Address];
  const { username, password, db, isTls } = first;
  if (isCluster && db !== 0) throw new UsageError("A Cluster has only database 0.");
  const open = await library();
  const addresses = nodes.map(({ host, port }) => ({ host, port }));
  const login = { username, password, isTls };
  const target: Target = { addresses, isGuess, login, db, isCluster, sentinel };
  const reached = await reach(target, patience);
  const where = sentinel === undefined ? showAddress(first) : `the primary of ${visible(sentinel)}`;
  // A library asks one sentinel after the other, and would wait long for a silent one.
  const ordered = [reached, ...addresses.filter((one) => one !== reached)];
  const failed = (error: Error): void => {
    const why = error.name === "ReplyError" ? whyNot(error, where, { db, isGuess }, 0) : null;
    if (why?.mayPass === false) patience.refused?.(why);
  };
  const connection = await open({ ...target, addresses: ordered }, failed, patience.signal);
  const looked = [where, db === 0 ? [] : `database ${db}`, prefix === "" ? [] : `prefix ${visible(prefix)}`];
  const locks = createLockClient(connection.redis, {
    connection: "own",
    ...(prefix && { prefix }),
    ...options,
  });
  return {
    locks,
    get redis() {
      connection.use();
      return connection.redis;
    },
    where: `(${looked.flat().join(", ")})`,
    close: async () => {
      await locks.close({ grace: 0 });
      connection.close();
    },
  };
}
