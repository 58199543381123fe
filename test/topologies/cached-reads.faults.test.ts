import { afterAll, afterEach, beforeAll, describe, expect, it } from "vitest";
import type { Lease, ReadWriteLock } from "../../src/index.ts";
import type { LocalServer } from "../../tools/redis/index.ts";
import { freshName, Parties, type Party } from "../support/fixture.ts";
import { heard, keepAlways } from "../support/kept-reads.ts";
import { staysQuiet } from "../support/quiet.ts";
import { RedisCluster } from "../support/servers/cluster.ts";
import type { Connection } from "../support/servers/connection.ts";
import { SentinelGroup } from "../support/servers/sentinel.ts";
import { timed, timedAwake } from "../support/stage.ts";
import { LINGERING, STAY_WINDOW } from "../support/stays.ts";
import { until } from "../support/until.ts";

// Readers have left, and their process keeps what they shared: in a Cluster, and where the server
// that has its key is replaced.

staysQuiet();
keepAlways();
const parties = new Parties();

/** ms: less than `linger`, and than a re-check. */
const AT_ONCE = 700;
/** ms: what is left of a kept hold, and what a waiter adds to that. */
const A_WINDOW = STAY_WINDOW + 1_925;

interface Scene {
  readonly keeper: Party;
  readonly other: Party;
  readonly key: string;
  readonly read: ReadWriteLock["read"];
  readonly write: ReadWriteLock["write"];
}

/** A process that keeps reads, and a writer of another one. */
async function keeps(connect: () => Connection): Promise<Scene> {
  const client = { replyTimeout: 2_000 };
  const keeper = await parties.join({ connect, client: { ...client, ...LINGERING } });
  const other = await parties.join({ connect, client });
  for (const { locks } of [keeper, other]) locks.on("error", () => {});
  const name = freshName();
  const { read } = keeper.locks.readWriteLock(name);
  const { write } = other.locks.readWriteLock(name);
  const scene = { keeper, other, key: `holdfast:rw:{${name}}`, read, write };
  await keep(scene);
  return scene;
}

async function keep({ keeper, read }: Scene): Promise<void> {
  await until(async () => {
    await read.withLock(() => {});
    return keeper.locks.stats().kept === 1;
  });
}

/**
 * The server is replaced while nobody is inside. From then on a reader comes again and again, until
 * a writer has been inside: never beside it. Returns how many ms the writer was locked out once
 * Redis could be reached.
 */
async function replaced(
  { other, key, read, write }: Scene,
  primary: LocalServer,
  replace: () => Promise<unknown>,
): Promise<number> {
  let [writer, reader, isOver, refused] = [null as Lease | null, null as Lease | null, false, 0];
  const beside: string[] = [];
  const replacing = replace();
  await until(() => primary.state === "ended");
  const reading = (async () => {
    while (!isOver) {
      reader = await read.tryLock().catch(() => null);
      if (!reader) refused++;
      if (reader && writer?.held) beside.push("a reader came in beside a writer");
      await new Promise((resolve) => setTimeout(resolve, 5));
      await reader?.unlock().catch(() => {});
      reader = null;
    }
  })();
  // As soon as there is another one: what was kept would still live by then.
  await until(() =>
    other.redis.exists(key).then(
      () => true,
      () => false,
    ),
  );
  const [lease, waited] = await timed(until(() => write.tryLock(2 * A_WINDOW).catch(() => null)));
  writer = lease;
  if (reader?.held) beside.push("a writer came in beside a reader");
  refused = 0;
  await until(() => refused >= 10);
  expect([beside, writer.held]).toEqual([[], true]);
  isOver = true;
  await reading;
  await writer.unlock();
  await replacing;
  return waited;
}

describe("in a Cluster, a cached read", () => {
  let cluster: RedisCluster;
  beforeAll(async () => {
    cluster = await RedisCluster.launch({ replicas: 1 });
  });
  afterEach(async () => {
    await parties.close();
    await cluster.restore();
  });
  afterAll(() => cluster.stop());

  it("is recalled by a message of its slot", async () => {
    const scene = await keeps(() => cluster.connect());
    const { keeper, write, key } = scene;
    const channels = async (kind: "SHARDCHANNELS" | "CHANNELS"): Promise<number> => {
      const names = (await (await cluster.adminOf(key)).call("PUBSUB", kind)) as string[];
      return names.filter((channel) => channel.includes(keeper.locks.id)).length;
    };
    expect([await channels("SHARDCHANNELS"), await channels("CHANNELS")]).toEqual([1, 0]);
    const recalls = heard(keeper, "recall");
    for (const how of ["lock", "tryLock"] as const) {
      await keep(scene);
      // The first one has to subscribe.
      await (await write.lock()).unlock();
      await keep(scene);
      recalls.length = 0;
      // tryLock() gives a busy machine 50 ms for the answer: another call then finds the lock free.
      const [lease, waited] = await timedAwake(until(() => write[how]({})));
      expect([lease.held, waited < AT_ONCE, recalls.length]).toEqual([true, true, 1]);
      await lease.unlock();
    }
  });

  it("keeps no writer out for long when its primary is killed, and no reader enters beside the writer", async ({
    annotate,
  }) => {
    const scene = await keeps(() => cluster.connect());
    const waited = await replaced(scene, (await cluster.primaryOf(scene.key)).server, () =>
      cluster.killPrimaryOf(scene.key),
    );
    await annotate(`${waited} ms`);
    expect(waited).toBeLessThan(A_WINDOW);
  });
});

describe("in a Sentinel group, a cached read", () => {
  let group: SentinelGroup;
  beforeAll(async () => {
    group = await SentinelGroup.launch();
  });
  afterEach(async () => {
    await parties.close();
    await group.restore();
  });
  afterAll(() => group.stop());

  it.for(["is known to", "is forgotten by"])(
    "and %s the promoted server keeps no writer out for long, and no reader enters beside the writer",
    async (how, { annotate }) => {
      const scene = await keeps(() => group.connect());
      if (how === "is forgotten by") await (await group.adminOf()).del(scene.key);
      const waited = await replaced(scene, await group.primary(), () => group.killPrimary());
      await annotate(`${waited} ms`);
      expect(waited).toBeLessThan(A_WINDOW);
    },
  );
});
