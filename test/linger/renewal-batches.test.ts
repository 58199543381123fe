import { afterAll, expect, it } from "vitest";
import { RENEWAL_BATCH } from "../../src/defaults.ts";
import { freshName } from "../support/fixture.ts";
import { OwnServer } from "../support/own-server.ts";
import { keep } from "../support/stays.ts";

// Kept locks that are given back together go by as few commands, and as few bytes, as it takes: a
// process that ends writes only what its connection takes at once.

const own = new OwnServer();
afterAll(() => own.parties.close());

it.each([false, true])(
  "the text of the script goes with the first batch only; forgotten by the server: %s",
  async (isFlushed) => {
    const near = await own.parties.join({ url: own.url, client: { linger: 1_500 } });
    const names = Array.from({ length: 2 * RENEWAL_BATCH + 1 }, () => freshName());
    await keep(near, names[0] ?? "");
    // Side by side: on a busy machine the first would no longer be cached after one by one.
    await Promise.all(names.slice(1).map(async (name) => (await near.locks.lock(name).lock()).unlock()));
    const { kept } = near.locks.stats();
    expect(kept).toBeGreaterThan(RENEWAL_BATCH);
    if (isFlushed) await own.admin.script("FLUSH");
    await own.admin.config("RESETSTAT");
    await near.locks.close();
    const stats = await own.admin.info("commandstats");
    const callsOf = (command: string): number =>
      Number(new RegExp(`cmdstat_${command}:calls=(\\d+)`).exec(stats)?.[1] ?? 0);
    expect(callsOf("eval")).toBe(1);
    expect(callsOf("evalsha")).toBe(Math.ceil(kept / RENEWAL_BATCH) - 1);
    expect(await own.admin.exists(...names.map((name) => `holdfast:{${name}}`))).toBe(0);
  },
);
