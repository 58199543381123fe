import { createClient } from "redis";
import { afterAll, afterEach, beforeAll, describe, expect, it } from "vitest";
import { createLockClient } from "../../src/index.ts";
import { type LocalServer, launchServer } from "../../tools/redis/index.ts";
import { makeCertificates } from "../support/certificates.ts";
import { Cli, programBeside, temporary } from "../support/cli.ts";
import { freshName } from "../support/fixture.ts";
import { inTurn } from "../support/in-turn.ts";
import { RedisCluster } from "../support/servers/cluster.ts";
import { GROUP, sentinelOptions } from "../support/servers/sentinel-setup.ts";

// Every way to name a Redis, in a project that has one client library only.

let [server, sentinel, secure] = [] as LocalServer[] as [LocalServer, LocalServer, LocalServer];
let cluster: RedisCluster;
let ca: string;

beforeAll(async () => {
  server = await launchServer();
  sentinel = await launchServer(sentinelOptions({ primaryPort: server.port, quorum: 1, downAfter: 60_000 }));
  const tls = await makeCertificates(temporary());
  ({ ca } = tls);
  secure = await launchServer({ prepare: async () => ({ tls }) });
  cluster = await RedisCluster.launch();
});
afterEach(() => Cli.endAll());
afterAll(() => Promise.all([sentinel.stop(), server.stop(), secure.stop(), cluster.stop()]));

describe.each(inTurn(["ioredis", "redis", "redis5"]))("beside %s alone, the program", (library) => {
  let program: string;
  beforeAll(() => {
    program = programBeside(library);
  });

  /** `holdfast` with these arguments, as a process that finds this library only. */
  const holdfast = (url: string, args: readonly string[], env: NodeJS.ProcessEnv = {}) =>
    new Cli(url, args, { env }, ([node = ""]) => [node, program, ...args]).finished;

  it.each<[string, () => readonly [url: string, flags?: readonly string[], env?: NodeJS.ProcessEnv]]>([
    ["a server", () => [server.url]],
    ["a database", () => [`${server.url}/3`]],
    ["REDIS_URL", () => ["", [], { REDIS_URL: `${server.url}/4` }]],
    ["REDIS_URL with parameters", () => ["", [], { REDIS_URL: `${server.url}?family=0&db=4` }]],
    ["a server that speaks TLS", () => [secure.url, [], { NODE_EXTRA_CA_CERTS: ca }]],
    ["a Cluster", () => [cluster.servers.map(({ url }) => url).join(","), ["--cluster"]]],
    ["sentinels", () => [`redis://127.0.0.1:1,${sentinel.url}`, ["--sentinel", GROUP]]],
  ])("finds %s", { timeout: 60_000 }, async (_, address) => {
    const [url, flags = [], env] = address();
    const name = freshName();
    // What it runs sees the lock that it holds.
    const inner = [process.execPath, program, "ls", "--json", ...flags, name];
    const { code, stdout } = await holdfast(url, ["run", ...flags, name, "--", ...inner], env);
    expect(code).toBe(0);
    expect(JSON.parse(stdout)).toMatchObject({ name, kind: "lock" });
    const doctor = await holdfast(url, ["doctor", ...flags], env);
    expect(doctor.stdout).toMatch(/A lock is handed over to a waiter in/);
    expect(doctor.stdout).not.toContain("✘");
    expect(doctor.code).toBe(0);
  });

  it("has the locks of a client with the same prefix, user and password, and no others", async () => {
    const name = freshName();
    const redis = createClient({ url: server.url });
    await redis.connect();
    await redis.sendCommand(["ACL", "SETUSER", "app", "on", ">a%b", "~app:*", "&app:*", "+@all"]);
    const locks = createLockClient(redis, { prefix: "app:" });
    const lease = await locks.lock(name).lock();
    const url = server.url.replace("://", "://app:a%25b@");
    const ls = (...flags: string[]) => holdfast(url, ["ls", "--json", ...flags]);
    expect(JSON.parse((await ls("--prefix", "app:")).stdout)).toMatchObject({ name });
    expect((await ls("--prefix", "app:other:")).stdout).toBe("");
    expect((await holdfast(url, ["break", "--yes", "--prefix", "app:", name])).code).toBe(0);
    expect(await locks.lock(name).isLocked()).toBe(false);
    await lease.unlock().catch(() => {});
    await locks.close();
    redis.destroy();
  });
});
