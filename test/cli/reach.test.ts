import { once } from "node:events";
import { readFileSync } from "node:fs";
import { type AddressInfo, createServer } from "node:net";
import { Redis } from "ioredis";
import { afterAll, afterEach, beforeAll, describe, expect, it } from "vitest";
import { reach } from "../../src/tools/cli/reach.ts";
import { whyNot } from "../../src/tools/cli/why-not.ts";
import { type LocalServer, launchServer } from "../../tools/redis/index.ts";
import { makeCertificates } from "../support/certificates.ts";
import { Cli, temporary } from "../support/cli.ts";
import { freshName } from "../support/fixture.ts";
import { OwnServer } from "../support/own-server.ts";

// A Redis that lets nobody in is told at once, with its address and the reason, and without a password.

const own = new OwnServer();
afterEach(() => Cli.endAll());

describe("a Redis that refuses its clients", () => {
  beforeAll(async () => {
    await own.admin.call("ACL", "SETUSER", "poor", "on", ">sesame", "~*", "-@all", "+ping");
    await own.admin.call("ACL", "SETUSER", "noping", "on", ">sesame", "~*", "&*", "+@all", "-ping");
    await own.admin.call("ACL", "SETUSER", "noselect", "on", ">sesame", "~*", "&*", "+@all", "-select");
    await own.admin.call("ACL", "SETUSER", "default", "resetpass", ">sesame");
  });

  it.each([
    [
      "ls",
      "redis://u:secret@127.0.0.1:1",
      "Redis at 127.0.0.1:1 cannot be reached: connection refused (ECONNREFUSED)",
    ],
    [
      "doctor",
      "redis://u:secret@127.0.0.1:1",
      "Redis at 127.0.0.1:1 cannot be reached: connection refused (ECONNREFUSED)",
    ],
    ["elect x -- true", "redis://127.0.0.1:1", "Redis at 127.0.0.1:1 cannot be reached: connection refused"],
    ["inspect x", "redis://nowhere.invalid:1", "Redis at nowhere.invalid:1 cannot be reached: "],
    ["break x --yes", "redis://:secret@OWN", "refuses the user or the password (WRONGPASS)"],
    ["ls --sentinel main", "redis://OWN", "wants a password"],
    ["ls", "rediss://default:sesame@OWN", "does not speak TLS there"],
    ["ls --cluster", "redis://:sesame@OWN", "is no Cluster"],
    ["ls", "redis://poor:sesame@OWN", "NOPERM"],
    ["inspect x", "redis://poor:sesame@OWN", "NOPERM"],
    // In database 0, where ioredis goes on, the lock would keep nobody out.
    ["run x -- true", "redis://:sesame@OWN/99999", "refuses database 99999"],
    ["run x -- true", "redis://noping:sesame@OWN/99999", "refuses database 99999"],
    ["run x -- true", "redis://noselect:sesame@OWN/1", "refuses database 1"],
  ])("is reported with its reason by %s of %s", async (line, address, why) => {
    const [command = "", ...args] = line.split(" ");
    const url = address.replace("OWN", new URL(own.url).host);
    const { code, stdout, stderr } = await new Cli(url, [command, "--json", ...args]).finished;
    const said = command === "doctor" ? stdout : stderr;
    expect(code).toBe(69);
    expect(said).toContain(why);
    expect(said).not.toMatch(/secret|sesame/);
    // ioredis warns in a line of its own that it may not run INFO, before or after.
    const json: unknown = JSON.parse(said.split("\n").findLast((one) => one.startsWith("{")) ?? "");
    const problem = expect.stringContaining(why) as unknown;
    expect(json).toMatchObject(
      command === "doctor"
        ? { ok: false, problems: [problem] }
        : { outcome: "unavailable", code: 69, message: problem },
    );
  });

  it.each([
    ["run NAME -- echo ran", "/1", ["-select"], "refuses database 1: NOPERM"],
    ["elect NAME -- echo ran", "", ["<sesame", ">other"], "refuses the user or the password"],
    ["elect --observe NAME", "/1", ["-select"], "refuses database 1: NOPERM"],
  ])("ends the wait of %s after a reconnect", async (line, db, change, why) => {
    const name = freshName();
    await own.admin.call("ACL", "SETUSER", "later", "reset", "on", ">sesame", "~*", "&*", "+@all");
    const { locks } = await own.parties.join({ url: `${own.url.replace("://", "://:sesame@")}${db}` });
    await using _lock = await locks.lock(name).lock();
    await using _term = await locks.election(name).campaign();
    const [command = "", ...args] = line.split(" ").map((word) => (word === "NAME" ? name : word));
    const url = own.url.replace("://", "://later:sesame@");
    const cli = new Cli(url + db, [command, "--json", ...args]);
    await cli.says(/Waiting for|"value":/);
    // This ends its connections too.
    await own.admin.call("ACL", "SETUSER", "later", ...change);
    await own.admin.call("CLIENT", "KILL", "USER", "later");
    const { code, stdout, stderr } = await cli.finished;
    expect({ code, stdout }).toEqual({ code: 69, stdout: expect.not.stringContaining("ran") });
    expect(stderr).toContain(`"outcome":"unavailable","code":69`);
    expect(stderr).toContain(why);
    expect(stderr).not.toMatch(/sesame/);
  });

  it.each([
    ["127.0.0.1:1", "connection refused"],
    ["OWN", "wants a password"],
  ])("at %s is not asked for the 5 s for which an answer is awaited", async (address, why) => {
    const { hostname: host, port } = new URL(`redis://${address.replace("OWN", new URL(own.url).host)}`);
    const target = {
      isGuess: false,
      login: { username: "", password: "", isTls: false },
      db: 0,
      isCluster: false,
      sentinel: undefined,
      family: 0 as const,
    };
    const since = performance.now();
    const addresses = [{ host, port: Number(port) }];
    await expect(reach({ ...target, addresses }, {})).rejects.toThrow(why);
    expect(performance.now() - since).toBeLessThan(1_600);
  });

  it("at an address that the user did not name is reported with a hint to name one", () => {
    const refused = Object.assign(new Error(), { code: "ECONNREFUSED" });
    const why = whyNot(refused, "127.0.0.1:6379", { db: 0, isGuess: true }, 1);
    expect(why?.message).toContain("HOLDFAST_REDIS");
  });

  it("is not confused with one that only refuses PING", async () => {
    const url = own.url.replace("://", "://noping:sesame@");
    expect((await new Cli(`${url}/1`, ["run", "x", "--", "true"]).finished).code).toBe(0);
  });
});

it("a server that hangs up at once is reported as one that may want TLS", async () => {
  const server = createServer((socket) => socket.destroy());
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
  const url = `redis://127.0.0.1:${(server.address() as AddressInfo).port}`;
  try {
    const { code, stderr } = await new Cli(url, ["ls"]).finished;
    expect({ code, stderr }).toEqual({ code: 69, stderr: expect.stringContaining("rediss://") });
  } finally {
    server.close();
  }
});

describe("a Redis that speaks TLS", () => {
  let server: LocalServer;
  let ca: string;
  beforeAll(async () => {
    const tls = await makeCertificates(temporary());
    ({ ca } = tls);
    server = await launchServer({ prepare: async () => ({ tls }) });
  });
  afterAll(() => server.stop());

  it.each([
    ["rediss://127.0.0.1", () => "", "NODE_EXTRA_CA_CERTS=<file> names a private one"],
    ["rediss://127.0.0.1", () => own.url, "the file of NODE_EXTRA_CA_CERTS, redis://127"],
    [
      "rediss://localhost",
      () => ca,
      "its certificate is for another host (Host: localhost. is not cert's CN",
    ],
    ["redis://127.0.0.1", () => ca, "it may want TLS (rediss://)"],
  ])("is reported at %s with what to do about its certificate", async (address, file, why) => {
    const env = { NODE_EXTRA_CA_CERTS: file() };
    const { code, stderr } = await new Cli(`${address}:${server.port}`, ["ls"], { env }).finished;
    expect({ code, stderr }).toEqual({ code: 69, stderr: expect.stringContaining(why) });
  });

  it("says that it wants a certificate of its clients, in both versions of TLS", async () => {
    const { url, port } = server;
    const admin = new Redis({ host: "127.0.0.1", port, tls: { ca: readFileSync(ca) } });
    await admin.config("SET", "tls-auth-clients", "yes");
    for (const version of ["TLSv1.2", "TLSv1.2 TLSv1.3"]) {
      await admin.config("SET", "tls-protocols", version);
      const { code, stderr } = await new Cli(url, ["ls"], { env: { NODE_EXTRA_CA_CERTS: ca } }).finished;
      expect({ code, stderr }).toEqual({
        code: 69,
        stderr: expect.stringMatching(/wants? a certificate of its clients/),
      });
    }
    admin.disconnect();
  });
});

it.each([
  ["?tls=true", "REDIS_URL has the parameter 'tls', which holdfast does not read: it reads family and db"],
  ["?family=5", "The parameter family of REDIS_URL is 0, 4 or 6."],
  ["/2?db=3", "REDIS_URL names two databases, 2 and 3."],
  ["/x", "REDIS_URL takes an address such as redis://host:6379/0"],
])("an address that ends with %s is refused, with where it was given", async (end, message) => {
  const env = { REDIS_URL: `redis://:sesame@127.0.0.1:1${end}` };
  const { code, stderr } = await new Cli("", ["ls"], { env }).finished;
  expect({ code, stderr }).toEqual({ code: 64, stderr: expect.stringContaining(message) });
  expect(stderr).not.toContain("sesame");
});

it.each([
  [["ls", "--nonsense", "--json"], "Unknown option '--nonsense': holdfast help ls lists them."],
  [
    ["run", "--json", "--slots", "x", "a", "--", "true"],
    "--slots takes a whole number from 1 to 1000000, not 'x'.",
  ],
  [["nonsense", "--json"], "There is no command 'nonsense': holdfast help lists them."],
])("with --json, %j prints a line of JSON too", async (args, message) => {
  const { code, stderr } = await new Cli(own.url, args).finished;
  expect(code).toBe(64);
  expect(JSON.parse(stderr.trim().split("\n").at(-1) ?? "")).toEqual({ outcome: "usage", code: 64, message });
});
