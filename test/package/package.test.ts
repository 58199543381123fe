import { execFile } from "node:child_process";
import { cp, mkdtemp, readFile, rm, stat, symlink } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { promisify } from "node:util";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { freshName, testUrl } from "../support/fixture.ts";
import { consumer, packPackage } from "../support/package.ts";

// The package as npm would publish it, in the hands of users: packed, unpacked, compiled against and run.

/** What it may take on a user's disk. */
const WEIGHT_KIB = 1229;
/** What importing the lock loads of it, and the types that it has. */
const LOCK_KIB = 450;
/** An empty folder of a usual file system. */
const FOLDER_BYTES = 4096;

/** ms that a compiler may take on a busy machine. */
const COMPILING = 120_000;

const root = fileURLToPath(new URL("../..", import.meta.url));
const run = promisify(execFile);
const tsc = join(root, "node_modules/typescript/bin/tsc");

let temp: string;
/** The paths in the tarball, without its top folder. */
let packed: string[];

beforeAll(async () => {
  temp = await mkdtemp(join(tmpdir(), "holdfast-package-"));
  packed = await packPackage(temp);
});
afterAll(() => rm(temp, { recursive: true, force: true }));

describe("the tarball", () => {
  it("has what users need, and nothing else", () => {
    expect(packed).toEqual(
      expect.arrayContaining([
        "package.json",
        "README.md",
        "LICENSE",
        "dist/index.js",
        "dist/index.d.ts",
        "docs/errors.md",
      ]),
    );
    const known =
      /^(dist\/[\w-]+(\.d\.ts|\.js)|docs\/[\w-]+\.md|README\.md|CHANGELOG\.md|LICENSE|package\.json)$/;
    expect(packed.filter((path) => !known.test(path))).toEqual([]);
    // To be read in the repository, where the programs are.
    expect(packed).not.toContain("docs/recipes.md");
    // For people who change the library.
    expect(packed.filter((path) => path.startsWith("docs/protocol"))).toEqual([]);
    expect(packed).not.toContain("docs/maintaining.md");
  });

  it("is light", async () => {
    const kib = async (paths: readonly string[]) => {
      const folders = new Set(paths.map((path) => join(path, "..")));
      const sizes = await Promise.all(paths.map((path) => stat(join(temp, "package", path))));
      return sizes.reduce((sum, { size }) => sum + size, folders.size * FOLDER_BYTES) / 1024;
    };
    expect(await kib(packed)).toBeLessThanOrEqual(WEIGHT_KIB);
    const reached = await reachedFrom("dist/index.js", "dist/index.d.ts");
    expect(await kib(reached)).toBeLessThanOrEqual(LOCK_KIB);
  });

  it("has exporters that load nothing of the lock, which loads nothing of them", async () => {
    const lock = new Set(await reachedFrom("dist/index.js"));
    for (const name of ["otel", "prometheus"]) {
      const exporter = await reachedFrom(`dist/${name}.js`);
      expect(exporter.sort()).toEqual(["dist/exporters.js", `dist/${name}.js`].sort());
      expect(exporter.filter((path) => lock.has(path))).toEqual([]);
    }
  });

  it("has every script once, and every declaration that another one names", async () => {
    // A long string goes on in the next line.
    const modules = await reachedFrom("dist/index.js");
    const texts = await Promise.all(modules.map((path) => readFile(join(temp, "package", path), "utf8")));
    const code = texts.join("").replaceAll("\\\n", "");
    for (const line of ["local function grantNext", "local function missingRight"])
      expect(code.split(line), line).toHaveLength(2);
    const declarations = packed.filter((path) => path.endsWith(".d.ts"));
    for (const path of declarations) {
      const text = await readFile(join(temp, "package", path), "utf8");
      for (const [, name] of text.matchAll(/\b(?:from|import)\s*\(?"\.\/([^"]+)\.js"/g))
        expect(declarations).toContain(`dist/${name}.d.ts`);
    }
  });

  it("imports nothing but Node.js, eventemitter3, p-timeout and itself; each exporter what it exports to", async () => {
    const own = /^(node:[\w/]+|eventemitter3|p-timeout|\.\.?\/[\w./-]+)$/;
    // The program connects by itself.
    const peers: Record<string, string> = {
      otel: "@opentelemetry/api",
      prometheus: "prom-client",
      cli: "ioredis",
    };
    const specifier = /\b(?:from|import|require)\s*\(?\s*["']([^"'\n]+)["']/g;
    const imported = new Set<string>();
    for (const path of packed.filter((path) => path.startsWith("dist/"))) {
      const text = await readFile(join(temp, "package", path), "utf8");
      const code = text.replace(/^\s*(\/?\*|\/\/).*$/gm, ""); // examples in comments import ioredis
      const [, entry = ""] = /^dist\/(\w+)\./.exec(path) ?? [];
      for (const [, name = ""] of code.matchAll(specifier)) {
        imported.add(name);
        if (!own.test(name)) expect(`${path}: ${name}`).toBe(`${path}: ${peers[entry]}`);
      }
    }
    expect(imported).toContain("eventemitter3"); // the search finds something
    expect(imported).toContain("p-timeout");
  });
});

describe.each(["ioredis", "ioredis5"])("a consumer with %s", (alias) => {
  let folder: string;

  beforeAll(async () => {
    folder = await consumer(temp, alias, {
      "package.json": '{ "type": "module" }',
      "tsconfig.json": TSCONFIG,
      "main.ts": MAIN,
      "main.cjs": REQUIRE,
      "old/package.json": '{ "type": "commonjs" }',
      "old/tsconfig.json": OLD_TSCONFIG,
      "old/old.ts": OLD,
      "cpu.mjs": CPU,
    });
    await compile(folder);
  });

  it("compiles what users write, and runs it", async () => {
    const { stdout, stderr } = await node("main.js");
    expect({ stdout: stdout.trim().split("\n"), stderr }).toEqual({ stdout: SAID, stderr: "" });
  });

  it("may require() it", async () => {
    const { stdout } = await node("main.cjs");
    expect(stdout.trim()).toBe("required true true");
  });

  it("has the program, which says what it lacks where ioredis is not installed", async () => {
    const program = join(folder, "node_modules/holdfast/dist/cli.js");
    const args = ["--redis", testUrl(), freshName(), "--", "echo", "ran"];
    expect((await run(process.execPath, [program, "run", ...args])).stdout).toBe("ran\n");
    expect((await run(process.execPath, [program, "--version"])).stdout).toMatch(/^\d+\.\d+\.\d+\n$/);
    const alone = join(temp, `alone-${alias}`); // where no folder above has it
    await cp(join(folder, "node_modules/holdfast"), join(alone, "node_modules/holdfast"), {
      recursive: true,
    });
    for (const name of ["eventemitter3", "p-timeout"])
      await symlink(join(root, "node_modules", name), join(alone, "node_modules", name));
    const lacking = run(process.execPath, [join(alone, "node_modules/holdfast/dist/cli.js"), "run", ...args]);
    await expect(lacking).rejects.toMatchObject({
      code: 69,
      stderr: expect.stringMatching(/^holdfast: ioredis is not installed.*\n$/),
    });
  });

  it.skipIf(alias !== "ioredis")(
    "compiles with the resolution that knows main and types only",
    () => compile(join(folder, "old")),
    COMPILING,
  );

  it.skipIf(alias !== "ioredis")("loads it in a fraction of what ioredis takes", async () => {
    const ratios: number[] = [];
    for (let i = 0; i < 9; i++) ratios.push(Number((await node("cpu.mjs")).stdout));
    ratios.sort((a, b) => a - b);
    // 0.27 on a busy machine, 20 to 25 ms of CPU. It was 0.85 when every source file was a module.
    expect(ratios[4]).toBeLessThan(0.5);
  });

  const node = (file: string) =>
    run(process.execPath, [file, testUrl(), freshName()], { cwd: folder, timeout: 15_000 });
});

/** The files of the package that these name by import, and those that they name. */
async function reachedFrom(...paths: string[]): Promise<string[]> {
  const found = new Set(paths);
  for (const path of found) {
    const text = await readFile(join(temp, "package", path), "utf8");
    for (const [, name] of text.matchAll(/\b(?:from|import)\s*\(?\s*"\.\/([^"]+)\.js"/g))
      found.add(`dist/${name}${path.endsWith(".d.ts") ? ".d.ts" : ".js"}`);
  }
  return [...found];
}

async function compile(folder: string): Promise<void> {
  await run(process.execPath, [tsc, "-p", folder]).catch((error) => {
    throw new Error(`The consumer does not compile:\n${error.stdout}`);
  });
}

const TSCONFIG = JSON.stringify({
  compilerOptions: {
    target: "ES2023",
    lib: ["ES2023", "ESNext.Disposable"],
    module: "NodeNext",
    types: ["node"],
    strict: true,
    exactOptionalPropertyTypes: true,
    skipLibCheck: false,
  },
  files: ["main.ts"],
});

const OLD_TSCONFIG = JSON.stringify({
  compilerOptions: {
    target: "ES2023",
    lib: ["ES2023", "ESNext.Disposable"],
    module: "CommonJS",
    moduleResolution: "node10",
    ignoreDeprecations: "6.0",
    types: ["node"],
    strict: true,
    skipLibCheck: true,
    noEmit: true,
  },
  files: ["old.ts"],
});

const OLD = `
import { createLockClient, type LockClient } from "holdfast";
import { Redis } from "ioredis";
export const locks: LockClient = createLockClient(new Redis());
`;

/** Prints the CPU time of an import, as a share of that of ioredis. */
const CPU = `
async function cpu(name) {
  const before = process.cpuUsage();
  await import(name);
  const { user, system } = process.cpuUsage(before);
  return user + system;
}
const ioredis = await cpu("ioredis");
console.log((await cpu("holdfast")) / ioredis);
`;

const REQUIRE = `
const { createLockClient, LockError, ...others } = require("holdfast");
const { Redis } = require("ioredis");
const [url, name] = process.argv.slice(2);
const redis = new Redis(url);
const locks = createLockClient(redis);
locks.lock(name).withLock((lease) => lease.held).then(async (held) => {
  console.log("required", held, new others.LockTimeoutError(name, 5) instanceof LockError);
  await locks.close();
  redis.disconnect();
});
`;

/** What MAIN prints. */
const SAID = [
  "await using: held true",
  "await using: free false",
  "null: somebody else holds it",
  "using: held true",
  "body first: 42 true",
  "options first: forty-two",
  "undefined members: true",
  "isLockLost: true false",
  "lost in an await using block: true",
  "timeout: LOCK_TIMEOUT 50",
  "abort: enough",
  "second copy: true",
  "optimistic: OK,1 1",
  "events: acquire release",
  "closed: CLIENT_CLOSED",
];

const MAIN = `
import { Cluster, Redis } from "ioredis";
import { Cluster as SecondCluster, Redis as SecondRedis } from "second-ioredis";
import {
  type BodyOptions,
  ClientClosedError,
  type ClusterLike,
  createLockClient,
  type EventKind,
  type GiveUpReason,
  type Inspection,
  isLockLost,
  type Lease,
  type LingerOptions,
  type Lock,
  type LockClient,
  type LockClientOptions,
  LockError,
  LockLostError,
  type LockOptions,
  type LockStats,
  LockTimeoutError,
  type LossReason,
  optimistic,
  type RedisLike,
} from "holdfast";

const [url = "", name = ""] = process.argv.slice(2);
const say = (...words: unknown[]): void => console.log(words.join(" "));

const redis = new Redis(url);
const redis2 = new Redis(url, { maxRetriesPerRequest: 1 });
const second = new SecondRedis(url);
const locks: LockClient = createLockClient(redis);
const others = createLockClient(redis2, { leaseTime: 5_000, grantWindow: undefined, connection: "own" });
const lingering: LingerOptions = { linger: 0, localPasses: undefined };
const lock: Lock = locks.lock(name, lingering);
const kept: LockStats["kept"] = locks.stats().kept;
if (kept !== 0) throw new Error("nothing is kept yet");
const other = others.fairLock(name);

const told = new Set<string>();
locks.on("acquire", ({ name, token, waited, kept }) => {
  const types: [string, number, number, boolean] = [name, token, waited, kept];
  told.add(types.length === 4 ? "acquire" : "nothing");
});
locks.on("recall", ({ name, kind, idle, uses }) => {
  const types: [string, EventKind, number, number] = [name, kind, idle, uses];
  return types;
});
locks.once("release", (event) => void told.add(event.held >= 0 ? "release" : "nothing"));
locks.on("wait", ({ holder }) => {
  const known: "this client" | "this process" | "unknown" = holder;
  return known;
});
locks.on("giveup", ({ name, kind, call, waited, why }) => {
  const types: [string, EventKind, number, number, GiveUpReason] = [name, kind, call, waited, why];
  return types;
});
locks.on("lost", ({ error }: { error: LockLostError }) => {
  const reason: LossReason = error.reason;
  return reason;
});
const onError = (error: Error): void => console.error(error);
locks.on("error", onError).off("error", onError);

async function awaitUsing(): Promise<void> {
  {
    await using lease = await lock.tryLock(1_000);
    if (!lease) throw new Error("busy");
    lease.assertHeld();
    say("await using: held", lease.held);
  }
  say("await using: free", await lock.isLocked());
}

async function awaitUsingNull(): Promise<void> {
  await using held = await other.lock();
  await using lease = await lock.tryLock(20);
  // @ts-expect-error it may be null
  const token = () => lease.token;
  if (lease === null) say("null: somebody else holds it");
  else say("both have it", lease.token, held.token, token);
}

async function justUsing(): Promise<void> {
  using lease = await lock.tryLock({ wait: 100, lease: 1_000 });
  const narrowed: Lease | null = lease;
  say("using: held", narrowed?.held);
}

async function bodies(): Promise<void> {
  const number: number = await lock.withLock(async (lease) => (lease.remaining() > 0 ? 42 : 0), { wait: 1_000 });
  const inside: boolean = await lock.withLock(() => lock.isHeldHere());
  say("body first:", number, inside);
  const text: string = await lock.withLock({ wait: 1_000, watchdog: true }, () => "forty-two");
  say("options first:", text);
}

async function undefinedMembers(maybe?: AbortSignal): Promise<void> {
  const options: LockOptions = { wait: undefined, lease: undefined, watchdog: undefined, maxHold: undefined };
  const ended: BodyOptions = { ...options, confirm: undefined };
  await lock.withLock(() => {}, ended);
  const lease = await lock.lock({ ...options, signal: maybe });
  await lease.extend(60_000);
  const inspection: Inspection = await lock.inspect();
  say("undefined members:", inspection.holder !== null && inspection.token === lease.token);
  await lease.unlock();
}

async function losing(): Promise<void> {
  const lease = await lock.lock();
  await other.forceUnlock();
  const error: unknown = await lease.unlock().catch((error: unknown) => error);
  say("isLockLost:", isLockLost(error), isLockLost(new Error("other")));
  const wrapped: unknown = await (async () => {
    await using lease = await lock.lock();
    await other.forceUnlock();
    throw new Error(\`the body failed, holding \${lease.name}\`);
  })().catch((error: unknown) => error);
  say("lost in an await using block:", isLockLost(wrapped) && !(wrapped instanceof LockError));
}

async function impatient(): Promise<void> {
  await using _ = await other.lock();
  try {
    await lock.lock({ wait: 50 });
  } catch (error) {
    if (!(error instanceof LockTimeoutError)) throw error;
    const code: string = error.code;
    say("timeout:", code, error.wait);
  }
  const controller = new AbortController();
  setTimeout(() => controller.abort("enough"), 20);
  await lock.lock({ signal: controller.signal }).catch((reason: unknown) => say("abort:", reason));
}

async function secondCopy(): Promise<void> {
  const likes: RedisLike[] = [redis, second];
  const options: LockClientOptions = { connection: "own", localPasses: undefined };
  await using clients = createLockClient(second, options);
  say("second copy:", (await clients.lock(name).withLock((lease) => lease.held)) && likes.length === 2);
}

async function transactions(): Promise<void> {
  const key = name + ":count";
  const tx = await optimistic(redis, [key], async (tx) => {
    const before: string | null = await tx.redis.get(key);
    tx.multi.set(key, Number(before) + 1, "EX", 100).exists(key);
    return tx;
  });
  const count: string | null = await optimistic(second, [key], ({ redis }) => redis.get(key), { retries: 3 });
  say("optimistic:", tx.replies, count);
}

await awaitUsing();
await awaitUsingNull();
await justUsing();
await bodies();
await undefinedMembers();
await losing();
await impatient();
await secondCopy();
await transactions();
say("events:", ...[...told].sort());
await Promise.all([locks.close({ grace: undefined }), others.close({ grace: 100 })]);
await lock.lock().catch((error: unknown) => say("closed:", error instanceof ClientClosedError && error.code));
for (const connection of [redis, redis2, second]) await connection.quit();

/** Never called: what must not compile. */
export async function refused(lease: Lease): Promise<void> {
  // @ts-expect-error the lease is what is unlocked
  await lock.unlock();
  // @ts-expect-error no time unit
  await lock.tryLock(10, 60, "SECONDS");
  // @ts-expect-error an unknown option
  await lock.tryLock({ wait: 10, leaseTime: 60 });
  // @ts-expect-error a number of ms
  await lock.lock({ wait: "1s" });
  // @ts-expect-error a number of ms
  await lock.tryLock("1s");
  // @ts-expect-error options, not a number
  await lock.lock(5);
  // @ts-expect-error no body
  await lock.withLock({ wait: 5 });
  // @ts-expect-error no such event
  locks.on("locked", () => {});
  // @ts-expect-error that event has no number
  locks.on("acquire", (count: number) => count);
  const cluster: ClusterLike = new Cluster([]);
  createLockClient(cluster);
  createLockClient(new SecondCluster([], { keyPrefix: "app:" }), { replicas: 1 });
  const length: number = await optimistic(cluster as Cluster, ["a"], async (tx) => {
    tx.multi.lpush("a", await tx.redis.llen("a"));
    return tx.replies.length;
  });
  // @ts-expect-error the body gives a number
  const text: string = await optimistic(redis, ["a"], () => length);
  // @ts-expect-error an array of keys
  await optimistic(redis, "a", () => text);
  // @ts-expect-error no such option
  await optimistic(redis, ["a"], () => 1, { wait: 5 });
  // @ts-expect-error a client needs a connection
  createLockClient("redis://127.0.0.1");
  // @ts-expect-error no such option
  createLockClient(redis, { lease: 5 });
  // @ts-expect-error made by createLockClient only
  lease.token = 5;
  // @ts-expect-error null is none
  await lock.lock({ signal: null });
}
`;
