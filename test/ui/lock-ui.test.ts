import { once } from "node:events";
import { createServer, type RequestListener } from "node:http";
import { type AddressInfo, connect } from "node:net";
import { hostname } from "node:os";
import { json, text } from "node:stream/consumers";
import { afterAll, afterEach, describe, expect, it, onTestFinished } from "vitest";
import { createLockClient, type Listed, type LockClient } from "../../src/index.ts";
import { redissonLock } from "../../src/redisson.ts";
import { createLockUI, type LockUIOptions, observe } from "../../src/tools/ui/index.ts";
import { LeaderValues } from "../../src/tools/ui/leader-values.ts";
import { decodeTold, STREAM } from "../../src/tools/ui/observed.ts";
import { failure } from "../contract/observe.ts";
import { ask } from "../support/ask-page.ts";
import { freshName, Parties, testUrl } from "../support/fixture.ts";
import { keepAlways } from "../support/kept-reads.ts";
import { present } from "../support/present.ts";
import { running } from "../support/result-runs.ts";
import { servePage } from "../support/served-page.ts";
import { until } from "../support/until.ts";

const parties = new Parties();
afterAll(parties.close);
const ended: (() => Promise<void>)[] = [];
afterEach(async () => {
  for (const end of ended.splice(0)) await end();
});

async function serve(options: Partial<LockUIOptions> = {}) {
  const { redis } = await parties.join({ url: testUrl() });
  const served = await servePage(redis, options);
  ended.push(served.stop);
  const get = (path: string, headers: Record<string, string> = {}, init: RequestInit = {}) =>
    fetch(served.url + path, { redirect: "manual", ...init, headers });
  const post = (body: unknown, headers: Record<string, string> = {}) =>
    get(
      "?part=act",
      {
        "content-type": "application/json",
        "x-holdfast": "page",
        origin: new URL(served.url).origin,
        ...headers,
      },
      {
        method: "POST",
        body: JSON.stringify(body),
      },
    );
  return { ...served, get, post };
}

/** Serves requests as a framework would hand them on. */
async function listen(handler: RequestListener): Promise<string> {
  const server = createServer(handler).listen(0, "127.0.0.1");
  await once(server, "listening");
  onTestFinished(() => {
    server.closeAllConnections();
    server.close();
  });
  return `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
}

/** What the page is made of, and what its script asks for. */
const PARTS = ["", "?part=page.js", "?part=page.css", "?part=icon.svg"];
const ASKED = ["?part=act", "?part=events", "?part=knob", "?part=state"];

/** What a view shows of it. */
const state = async (answer: Response) => (await answer.json()) as Record<string, unknown>;

describe("admission", () => {
  it("needs authorize with fetch, which knows no address", async () => {
    const { locks } = await parties.join();
    const request = new Request("http://localhost/locks/");
    const closed = createLockUI({ locks });
    const answer = await closed.fetch(request);
    expect([answer.status, await answer.text()]).toEqual([
      403,
      expect.stringMatching(/give createLockUI\(\) an `authorize`/),
    ]);
    const open = createLockUI({ locks, authorize: ({ headers }) => headers.get("cookie") === "admin" });
    expect((await open.fetch(request)).status).toBe(403);
    expect((await open.fetch(new Request(request, { headers: { cookie: "admin" } }))).status).toBe(200);
    const login = createLockUI({
      locks,
      authorize: () => new Response(null, { status: 401, headers: { "www-authenticate": "Basic" } }),
    });
    expect((await login.fetch(request)).headers.get("www-authenticate")).toBe("Basic");
  });
});

describe("the handler", () => {
  it("serves the page, with a strict policy, and again only after a change", async () => {
    const { get, url } = await serve();
    const { port, host, pathname } = new URL(url);
    for (const path of PARTS) {
      const answer = await get(path);
      expect(answer.status).toBe(200);
      expect(answer.headers.get("content-security-policy")).toMatch(
        /^default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'/,
      );
      expect(answer.headers.get("x-content-type-options")).toBe("nosniff");
      expect(await answer.text()).not.toMatch(/https?:\/\/(?!www\.w3\.org)/);
      const again = await get(path, { "if-none-match": answer.headers.get("etag") ?? "" });
      expect(again.status).toBe(304);
      // That of `fetch` closes the connection, which no browser does.
      const head = await ask({ to: { port }, host }, pathname + path, {}, "HEAD");
      expect([head.statusCode, await text(head)]).toEqual([200, ""]);
    }
    for (const part of ["nothing.js", "constructor", "__proto__", ""])
      expect((await get(`?part=${part}`)).status).toBe(404);
    expect((await get("", {}, { method: "PUT" })).status).toBe(405);
  });

  it("serves the page's parts at its own path, with or without a final slash, and if a mount cuts all of it off", async () => {
    const { ui } = await serve();
    const url = await listen((request, response) => {
      // As koa-mount does.
      request.url = request.url?.replace(/^\/cut/, "").replace(/^(?!\/)/, "/");
      void ui.node(request, response);
    });
    for (const path of ["/", "/locks", "/locks/", "/a/b.c/events", "/locks?of=shop", "/cut", "/cut/"]) {
      const page = await fetch(url + path, { redirect: "manual" });
      expect([path, page.status, page.headers.get("content-type")]).toEqual([
        path,
        200,
        expect.stringMatching(/html/),
      ]);
      const named = [...(await page.text()).matchAll(/(?:href|src)="([^"#]+)"/g)].map(([, one = ""]) => one);
      const script = await fetch(new URL("?part=page.js", page.url));
      const asked = [...(await script.text()).matchAll(/["`](\?part=\w+)/g)].map(([, one = ""]) => one);
      expect([...new Set([...named, ...asked])].sort()).toEqual([...PARTS.slice(1), ...ASKED].sort());
      for (const one of named) {
        const address = new URL(one, page.url);
        expect(address.pathname).toBe(new URL(page.url).pathname);
        const answer = await fetch(address, { redirect: "manual" });
        expect([one, answer.status]).toEqual([one, 200]);
        expect(answer.headers.get("content-type")).toMatch(/css|javascript|svg/);
      }
    }
  });

  it("embeds little", async () => {
    const { get } = await serve();
    const sizes = await Promise.all(PARTS.map(async (part) => (await (await get(part)).text()).length));
    expect(sizes.reduce((sum, size) => sum + size)).toBeLessThan(60 * 1_024);
  });

  it("survives requests that break off or are invalid, and an authorize that fails", async () => {
    const failure = new Error("the sessions cannot be read");
    const { url } = await serve({ authorize: () => Promise.reject(failure) });
    const { port } = new URL(url);
    const send = (text: string) => connect({ port: Number(port), host: "127.0.0.1" }).end(text);
    const [warned] = [once(process, "warning")];
    const answer = await fetch(url);
    expect([answer.status, await answer.text()]).toEqual([
      500,
      expect.stringMatching(/could not be answered/),
    ]);
    expect(await warned).toEqual([failure]);
    for (const head of ["TRACE / HTTP/1.1\r\nhost: localhost", "GET / HTTP/1.1\r\nhost: a:b@localhost"]) {
      const [said] = await once(send(`${head}\r\n\r\n`), "data");
      expect(String(said)).toMatch(/^HTTP\/1.1 400 /);
    }
    // Vitest fails for a rejection that nobody handles.
    const gone = send("POST / HTTP/1.1\r\nhost: localhost\r\ncontent-length: 100\r\n\r\n{");
    await once(gone.resume(), "close");
  });

  it.each([
    ["sent before", (() => new Response("Log in first.", { status: 401 }))(), [401, 500, 500]],
    ["that is an error", Response.error(), [500, 500, 500]],
  ])("survives an authorize that returns a Response %s, and says why", async (_, answer, statuses) => {
    const { get } = await serve({ authorize: () => answer });
    const warnings: Error[] = [];
    const warned = (warning: Error): void => void warnings.push(warning);
    process.on("warning", warned);
    const found: number[] = [];
    // Vitest fails for a rejection that nobody handles.
    for (const part of ["", "?part=events", "?part=state"]) found.push((await get(part)).status);
    await until(() => warnings.length === statuses.filter((status) => status === 500).length);
    process.off("warning", warned);
    expect(found).toEqual(statuses);
    for (const { message } of warnings) expect(message).toMatch(/^authorize\(\) returned a Response that /);
  });

  it("streams states, until the page closes", async () => {
    const { get, ui } = await serve();
    const name = freshName();
    const { locks } = await parties.join();
    const lease = await locks.lock(name).lock();
    const answer = await get(`?part=events&view=lock&kind=lock&name=${encodeURIComponent(name)}`);
    expect(answer.headers.get("content-type")).toMatch(/^text\/event-stream/);
    // A server that is being closed waits for no connection of a stream that has ended.
    expect(answer.headers.get("connection")).toBe("close");
    const reader = present(answer.body ?? undefined).getReader();
    let text = "";
    const read = async (): Promise<boolean> => {
      const { done, value } = await reader.read();
      text += new TextDecoder().decode(value);
      return done;
    };
    while (!text.includes("data:")) await read();
    const seen = JSON.parse(/^data: (.*)$/m.exec(text)?.[1] ?? "");
    expect(seen).toMatchObject({
      view: "lock",
      trouble: null,
      lock: { name, waitingProcesses: 0 },
      holders: [{ pid: process.pid, token: lease.token }],
    });
    ui.close();
    while (!(await read()));
    expect((await get("?part=state")).status).toBe(503);
    await lease.unlock();
  });

  it("serves the foremost locks, and those that fit a search", async () => {
    const { get } = await serve();
    const { locks } = await parties.join();
    const mark = freshName();
    const held = await Promise.all(["a", "b", "c"].map((end) => locks.lock(`${mark}:${end}`).lock()));
    const waiter = (await parties.join()).locks.lock(`${mark}:b`).lock();
    await until(async () => (await locks.lock(`${mark}:b`).inspect()).waiters?.length === 1);
    const now = await state(
      await get(`?part=state&view=now&search=${encodeURIComponent(mark.toUpperCase())}`),
    );
    expect(now).toMatchObject({ view: "now", fitting: 3, actions: [] });
    expect((now.locks as { name: string }[]).map(({ name }) => name)[0]).toBe(`${mark}:b`);
    for (const lease of held) await lease.unlock();
    await (await waiter).unlock();
  });
});

describe("actions", () => {
  const wanted = { action: "break", kind: "lock", name: "x", holder: "y", mode: null };

  it("are refused if not allowed, and from anywhere but the page", async () => {
    const shown = await serve();
    expect((await shown.post(wanted)).status).toBe(403);
    const { post, get, url } = await serve({ actions: ["break"] });
    expect((await post(wanted, { "x-holdfast": "" })).status).toBe(403);
    expect((await post(wanted, { "content-type": "text/plain" })).status).toBe(403);
    expect((await post(wanted, { "sec-fetch-site": "cross-site" })).status).toBe(403);
    const { port } = new URL(url);
    for (const origin of [
      "https://evil.example",
      `http://localhost:${port}`,
      "http://127.0.0.1:1",
      "null",
      "",
    ])
      for (const site of ["same-origin", "none"])
        expect((await post(wanted, { origin, "sec-fetch-site": site })).status).toBe(403);
    const without = {
      "content-type": "application/json",
      "x-holdfast": "page",
      "sec-fetch-site": "same-origin",
    };
    const body = JSON.stringify(wanted);
    expect((await get("?part=act", without, { method: "POST", body })).status).toBe(403);
    expect((await post({ ...wanted, action: "recall" })).status).toBe(403);
    expect((await post({ ...wanted, holder: 1 })).status).toBe(400);
    expect((await post({ ...wanted, name: "x".repeat(10_000) })).status).toBe(413);
    expect(await state(await post({ ...wanted, kind: "redisson" }))).toMatchObject({ done: false });
  });

  it("are understood however a body parser, which may or may not have read the body, hands it on", async () => {
    const { ui } = await serve({ actions: ["break"] });
    const name = freshName();
    const sent = JSON.stringify({ ...wanted, name });
    const read = [{ ...wanted, name }, sent, Buffer.from(sent), new TextEncoder().encode(sent)];
    for (const [body, isRead] of [...read.map((one) => [one, true]), [{}, false], [undefined, false]]) {
      const origin = await listen((request, response) => {
        void (isRead ? json(request) : Promise.resolve()).then(() =>
          ui.node(Object.assign(request, { body }), response),
        );
      });
      const headers = { "content-type": "application/json", "x-holdfast": "page", origin };
      const answer = await fetch(`${origin}?part=act`, { method: "POST", headers, body: sent });
      expect(await state(answer)).toEqual({ done: false, said: expect.stringMatching(/has gone/) });
    }
  });

  it("force-release a hold by its holder's id, in the viewer's name, after body parsers too", async () => {
    const { locks } = await parties.join();
    const { redis } = await parties.join();
    const own = createLockClient(redis);
    const ui = createLockUI({ locks: own, authorize: () => "alice", actions: ["break", "recall"] });
    onTestFinished(() => own.close());
    const origin = await listen((request, response) => {
      // As Express does below a path, behind express.json().
      void json(request).then((body) => {
        Object.assign(request, { body, originalUrl: request.url, url: "/" });
        return ui.node(request, response);
      });
    });
    const name = freshName();
    const lease = await locks.lock(name).lock();
    const post = async (wants: object) => {
      const headers = { "content-type": "application/json", "x-holdfast": "page", origin };
      const body = JSON.stringify({ ...wanted, name, ...wants });
      return state(await fetch(`${origin}/locks?part=act`, { method: "POST", headers, body }));
    };
    const holder = (await locks.lock(name).inspect()).holder?.id;
    expect(await post({ action: "recall" })).toEqual({ done: false, said: "Its holder uses it." });
    expect(await post({ holder: `${holder}0` })).toMatchObject({
      done: false,
      said: expect.stringMatching(/has gone/),
    });
    expect(lease.held).toBe(true);
    expect(await post({ holder })).toMatchObject({ done: true });
    await expect(lease.unlock()).rejects.toMatchObject({ code: "LOCK_LOST" });

    const term = await locks.election(name).campaign();
    expect(await post({ kind: "election", holder })).toMatchObject({ done: false });
    expect(await post({ kind: "election", holder: locks.id })).toMatchObject({ done: true });
    await expect(term.resign()).rejects.toMatchObject({ code: "LOCK_LOST" });

    const { run, ended } = await running(locks, name);
    const runner = (await locks.list({ kind: "remember", match: name }).next()).value?.holder?.id;
    expect(await post({ kind: "remember", holder })).toMatchObject({ done: false });
    expect(run.held).toBe(true);
    expect(await post({ kind: "remember", holder: runner })).toMatchObject({ done: true });
    expect(await ended).toMatchObject({ code: "LOCK_LOST", reason: "revoked", by: "alice" });

    const java = await redissonLock(locks, `${name}:java`).lock();
    const owner = (await redissonLock(locks, java.name).inspect()).holder?.id;
    const held = { kind: "redisson", name: java.name };
    expect(await post({ ...held, holder: `${owner}1` })).toMatchObject({ done: false });
    expect(java.held).toBe(true);
    expect(await post({ ...held, holder: owner })).toMatchObject({ done: true });
    await expect(java.unlock()).rejects.toMatchObject({ code: "LOCK_LOST" });
  });
});

it("a recall of unused reads releases them, without asking a writer", async () => {
  keepAlways();
  const { post } = await serve({ actions: ["recall"] });
  const { locks } = await parties.join({ client: { linger: 1_500 } });
  const { name, read, write } = locks.readWriteLock(freshName());
  const recall = async (mode: "read" | "write") =>
    state(await post({ action: "recall", kind: "readWrite", name, holder: "x", mode }));
  await until(async () => {
    await read.withLock(() => {});
    return locks.stats().kept === 1;
  });
  expect(await recall("read")).toEqual({ done: true, said: expect.stringMatching(/has released it\.$/) });
  const reader = await read.lock();
  expect(await recall("read")).toEqual({ done: false, said: "Its holder uses it." });
  await reader.unlock();
  await using _ = await write.lock();
  expect(await recall("read")).toEqual({ done: true, said: "No reader holds it." });
  expect(await recall("write")).toEqual({
    done: false,
    said: expect.stringMatching(/^A writer never keeps/),
  });
});

it("bad options are refused when the page is created", async () => {
  const { locks } = await parties.join();
  const bad: [unknown, RegExp][] = [
    [undefined, /takes \{ locks \}/],
    [{}, /locks must be a lock client/],
    [{ locks, authorise: () => true }, /unknown option 'authorise'; known are locks, authorize/],
    [{ locks, authorize: true }, /authorize must be a function/],
    [{ locks, actions: ["delete"] }, /actions must be an array of "recall" and "break"/],
    [{ locks, actions: ["recall"] }, /actions need authorize/],
    [{ locks, redis: "redis://" }, /redis must be an ioredis connection/],
  ];
  for (const [options, message] of bad) expect(() => createLockUI(options as LockUIOptions)).toThrow(message);
});

it("an observed client writes one entry for many calls, and nothing for calls that did not wait", async () => {
  const { redis, locks } = await parties.join();
  const { locks: other } = await parties.join();
  await redis.del(STREAM);
  const stop = observe(locks, redis);
  const [quiet, busy] = [freshName(), freshName()];
  await (await locks.lock(quiet).lock()).unlock();
  const held = await other.lock(busy).lock();
  let waiting = 0;
  locks.on("wait", () => waiting++);
  const calls = Array.from({ length: 20 }, () => locks.lock(busy).withLock(() => {}));
  await until(() => waiting === 20);
  // On a busy machine it may have no answer in time, which is no wait in vain.
  await until(async () => {
    const { code } = (await failure(locks.lock(busy).lock({ wait: 60 }))) as { code?: string };
    return code === "LOCK_TIMEOUT";
  });
  await held.unlock();
  await Promise.all(calls);
  const all = async () =>
    (await redis.xrange(STREAM, "-", "+")).flatMap(([, [, text = ""]]) => decodeTold(text) ?? []);
  const waits = async (): Promise<number> =>
    (await all())
      .flatMap((told) => Object.values(told.waits[busy] ?? {}))
      .reduce((sum, count) => sum + count, 0);
  await until(async () => (await waits()) >= 21);
  const told = await all();
  // A busy machine may need more time than one entry is for.
  expect(told.length).toBeLessThan(5);
  for (const { client, waits: counted } of told) {
    expect(client).toBe(locks.id);
    expect(Object.keys(counted)).not.toContain(quiet);
  }
  expect(
    told.some(({ calls }) =>
      calls.some(({ how, name, why }) => how === "giveup" && name === busy && why === "timeout"),
    ),
  ).toBe(true);
  expect(await redis.pttl(STREAM)).toBeGreaterThan(3_000_000);
  stop();
  expect(decodeTold("{}")).toBeNull();
});

it("with call sites, a holder and calls that ended are shown with the line that called; bad options are refused", async () => {
  const { get } = await serve();
  const { redis, locks } = await parties.join();
  for (const [options, why] of [
    [{ callSite: true }, /^Cannot observe: unknown option 'callSite'; known is callSites$/],
    [{ callSites: 1 }, /^Cannot observe: callSites must be true or false$/],
    [null, /^Cannot observe: options must be an object$/],
  ] as const)
    expect(() => observe(locks, redis, options as never)).toThrow(why);
  onTestFinished(observe(locks, redis, { callSites: true }));
  const name = freshName();
  const shown = async () => state(await get(`?part=state&view=lock&kind=lock&name=${name}`));
  const pay = () => locks.lock(name).lock();
  const site = expect.stringMatching(/^pay \(test\/ui\/lock-ui\.test\.ts:\d+:\d+\)$/);
  const lease = await pay();
  // It is reported while it lasts.
  const held = await until(async () => {
    const { holders } = await shown();
    return (holders as { site: string | null }[])[0]?.site !== null && holders;
  });
  expect(held).toMatchObject([{ token: lease.token, site }]);
  await lease.unlock();
  const ended = await until(async () => {
    const { reported } = await shown();
    return (reported as { how: string }[])[0]?.how === "released" && reported;
  });
  expect(ended).toMatchObject([{ site, client: locks.id }]);
});

it("a client that is closed and then no longer observed has reported the end of its last hold", async () => {
  const { get } = await serve();
  const { redis, locks } = await parties.join();
  const stop = observe(locks, redis);
  const name = freshName();
  const shown = async () => state(await get(`?part=state&view=lock&kind=lock&name=${name}`));
  const lease = await locks.lock(name).lock();
  const waited = locks.lock(name).lock();
  await lease.unlock();
  await (await waited).unlock();
  await locks.close();
  stop();
  await redis.quit();
  const { reported } = await shown();
  expect(reported).toMatchObject([{ how: "released", client: locks.id }]);
});

it("a caller that got the lock by a local hand-off, or from the cache, is shown once", async () => {
  const { get } = await serve();
  const { redis, locks } = await parties.join();
  onTestFinished(observe(locks, redis, { callSites: true }));
  const [passed, cached] = [locks.lock(freshName()), locks.lock(freshName(), { linger: 1_000 })];
  const first = await passed.lock();
  const next = passed.lock();
  await first.unlock();
  await (await cached.lock()).unlock();
  const leases = [await next, await cached.lock()];
  for (const { name } of leases) {
    const shown = async () => state(await get(`?part=state&view=lock&kind=lock&name=${name}`));
    // It is reported after 5 s.
    const { holders, reported } = await until(async () => {
      const seen = await shown();
      const told = [...(seen.reported as { how: string }[]), ...(seen.holders as { site: string | null }[])];
      return told.some((one) => ("how" in one ? one.how === "holds" : one.site !== null)) && seen;
    });
    expect(holders).toMatchObject([{ site: expect.any(String) }]);
    expect((reported as { how: string }[]).filter(({ how }) => how === "holds")).toEqual([]);
  }
  for (const lease of leases) await lease.unlock();
});

it("an election is shown with what its leader publishes, and never with the value of an earlier leader", async () => {
  const { get } = await serve();
  const { locks } = await parties.join();
  const name = freshName("election");
  const one = async (): Promise<unknown> =>
    (await state(await get(`?part=state&view=lock&kind=election&name=${name}`))).value;
  const term = await locks.election(name).campaign({ value: "10.0.0.7:8080" });
  expect(await one()).toBe("10.0.0.7:8080");
  await term.proclaim("10.0.0.7:9090");
  await until(async () => (await one()) === "10.0.0.7:9090");
  const { locks: others } = await parties.join();
  const next = others.election(name).campaign();
  await term.resign();
  await using _ = await next;
  await until(async () => (await one()) === null);
  // No name of an election is so long: the page answers all the same.
  const long = "x".repeat(2_000);
  expect((await get(`?part=state&view=lock&kind=election&name=${long}`)).status).toBe(200);
});

it("leaders' values: one that was read of another term is not shown", async () => {
  const values = new LeaderValues({
    election: () => ({ leader: async () => ({ token: 1, value: "old" }) }),
  } as unknown as LockClient);
  await values.refresh("scheduler");
  const of = (token: number) => values.of({ name: "scheduler", holder: { token } } as Listed);
  expect([of(1), of(2)]).toEqual(["old", null]);
});

it("the timeline of a lock names who force-released it, and each client by its label and place", async () => {
  const { get } = await serve();
  const { redis, locks } = await parties.join({ client: { label: "nightly invoices" } });
  const { locks: other } = await parties.join();
  const stop = observe(locks, redis);
  onTestFinished(stop);
  const name = freshName();
  const lease = await locks.lock(name).lock();
  // The holder learns who ended its hold only once it listens for callers that wait.
  const next = other.lock(name).lock();
  await until(() => lease.wanted.aborted);
  await other.lock(name).forceUnlock({ label: "alice, ticket 4711" });
  await until(() => lease.signal.aborted);
  await (await next).unlock();
  const [lost] = await until(async () => {
    const { reported } = await state(await get(`?part=state&view=lock&kind=lock&name=${name}`));
    return Array.isArray(reported) && reported.length > 0 && reported;
  });
  expect(lost).toMatchObject({
    ...{ how: "lost", why: "revoked by alice, ticket 4711", client: locks.id },
    ...{ label: "nightly invoices", host: hostname(), pid: process.pid },
  });
  await lease.unlock().catch(() => {});
});
