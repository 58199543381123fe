import { createLockClient, type LockClient, type LockClientOptions } from "../../index.ts";
import { quoteWhole } from "../../util/quote.ts";
import { visible } from "../../util/visible.ts";
import type { CommonValues } from "./command.ts";
import { UsageError } from "./exit-codes.ts";
import { library } from "./library.ts";
import type { Connection } from "./open.ts";
import { type Family, type Patience, reach, type Target } from "./reach.ts";
import { showAddress, whyNot } from "./why-not.ts";

/** A connection that this program has opened, and a lock client on it. */
export interface Connected {
  readonly locks: LockClient;
  /** For commands other than the lock client's; connects when it is first used. */
  readonly redis: Connection["redis"];
  /** "(redis.example:6379, database 2, prefix hf:)", for sentences about what is not there. */
  readonly where: string;
  /** ms from the attempt to connect to the first answer. */
  readonly firstAnswer: number;
  close(): Promise<void>;
}

type Given = Pick<CommonValues, "redis" | "cluster" | "sentinel" | "prefix">;

/** Flags override HOLDFAST_*, which overrides REDIS_URL. */
function settings(given: Given, env = process.env) {
  const named = [
    ["--redis", given.redis],
    ["HOLDFAST_REDIS", env.HOLDFAST_REDIS || undefined],
    ["REDIS_URL", env.REDIS_URL || undefined],
  ] as const;
  const [source, address] = named.find(([, text]) => text !== undefined) ?? ["--redis", undefined];
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
  return {
    nodes: urls.map((url) => readAddress(url, source)),
    isGuess: address === undefined,
    sentinel,
    isCluster,
    prefix,
  };
}

interface Address {
  readonly host: string;
  readonly port: number;
  readonly username: string;
  readonly password: string;
  readonly db: number;
  readonly isTls: boolean;
  readonly family: Family;
}

/** "host:port" is enough. `source`: where it was given, for messages. */
function readAddress(given: string, source: string): Address {
  const text = given.includes("://") ? given : `redis://${given}`;
  const url = URL.canParse(text) ? new URL(text) : null;
  // The text may contain a password, so it is not repeated.
  const path = /^\/?(\d*)$/.exec(url?.pathname ?? "");
  // An unreadable number must not become database 0, where no other process has this lock.
  if (url === null || !/^rediss?:$/.test(url.protocol) || url.hostname === "" || path === null)
    throw new UsageError(
      `${source} takes an address such as redis://host:6379/0, or rediss:// for TLS; after the host may come the number of a database, and nothing else.`,
    );
  const { family, db } = readParameters(url, source);
  if (path[1] && db !== null && db !== Number(path[1]))
    throw new UsageError(`${source} names two databases, ${Number(path[1])} and ${db}.`);
  return {
    host: url.hostname.replace(/^\[(.*)\]$/, "$1"),
    port: Number(url.port || 6379),
    username: decoded(url.username, source),
    password: decoded(url.password, source),
    db: db ?? Number(path[1]),
    isTls: url.protocol === "rediss:",
    family,
  };
}

/**
 * The parameters of an address that ioredis reads there too. Another one may say which Redis is
 * meant, or how to get in, so it is not ignored.
 */
function readParameters(
  { searchParams }: URL,
  source: string,
): { readonly family: Family; readonly db: number | null } {
  let [family, db]: [Family, number | null] = [0, null];
  for (const [name, text] of searchParams) {
    const isWhole = /^\d{1,9}$/.test(text);
    if (name === "family" && isFamily(Number(text)) && isWhole) family = Number(text) as Family;
    else if (name === "db" && isWhole) db = Number(text);
    else if (name === "family") throw new UsageError(`The parameter family of ${source} is 0, 4 or 6.`);
    else if (name === "db") throw new UsageError(`The parameter db of ${source} is a number.`);
    // Its value may be a password.
    else
      throw new UsageError(
        `${source} has the parameter ${quoteWhole(name)}, which holdfast does not read: it reads family and db${name === "tls" ? ", and rediss:// stands for TLS" : ""}.`,
      );
  }
  return { family, db };
}

const isFamily = (number: number): number is Family => number === 0 || number === 4 || number === 6;

function decoded(text: string, source: string): string {
  try {
    return decodeURIComponent(text);
  } catch {
    throw new UsageError(`A % in the user or the password of ${source} is written %25.`);
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
  const { username, password, db, isTls, family } = first;
  if (isCluster && db !== 0) throw new UsageError("A Cluster has only database 0.");
  const open = await library();
  const addresses = nodes.map(({ host, port }) => ({ host, port }));
  const login = { username, password, isTls };
  const target: Target = { addresses, isGuess, login, db, isCluster, sentinel, family };
  const since = performance.now();
  const reached = await reach(target, patience);
  const firstAnswer = performance.now() - since;
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
    firstAnswer,
    close: async () => {
      await locks.close({ grace: 0 });
      connection.close();
    },
  };
}
