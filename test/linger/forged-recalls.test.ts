import { describe, expect, it, onTestFinished, vi } from "vitest";
import { clientOf, Forger, guesses } from "../support/forger.ts";
import { runs, Stage } from "../support/stage.ts";
import { keep, LINGERING } from "../support/stays.ts";
import { until } from "../support/until.ts";
import { warm } from "../support/warm.ts";

// A user of the same Redis that may only publish and list channels ends no stay, and has its
// questions answered by no command.

vi.mock("../../src/defaults.ts", async (all) => (await import("../support/patience.ts")).patient(all));
const stage = new Stage();

describe("a forged recall", () => {
  /** A client behind the proxy keeps the lock with nobody inside. */
  async function kept() {
    const { near, far, lock, proxy } = stage;
    const keeper = await stage.join({ url: proxy.url, client: LINGERING });
    await warm(far, near);
    await keep(keeper, lock.name);
    const forger = await Forger.start(far.redis);
    const channels = await forger.channels();
    const channel = channels.find((one) => clientOf(one) === keeper.locks.id) ?? "";
    const own = `holdfast:client:${near.locks.id}`;
    return { keeper, forger, channel, key: lock.keys.lock, own };
  }
  /** As a client makes it. */
  const nonceOf = (asker: string): string => `${asker}.0123456789abcdef`;

  it("makes no client send a command, and uncaches no lock", async () => {
    const { lock, near, proxy } = stage;
    const { keeper, forger, channel, key } = await kept();
    proxy.record();
    const words = ["-", nonceOf(near.locks.id), `?${nonceOf(near.locks.id)}`];
    const forged = guesses(keeper.locks.id).flatMap((hold) =>
      words.map((word) => `recall ${hold} ${word} ${key}`),
    );
    expect(await forger.publish(channel, forged)).toBe(forged.length);
    // Behind all of it, by its own way: it is asked, and answers that nobody is inside.
    expect(await stage.far.locks.lock(lock.name).isLocked()).toBe(false);
    const sent = proxy.commands.filter(({ command }) => runs("release")(command) || runs("leave")(command));
    expect(sent).toEqual([]);
    expect(proxy.commands.filter(({ command }) => runs("probe")(command)).length).toBeLessThanOrEqual(1);
    expect(await lock.holder()).toContain(keeper.locks.id);
  });

  it("of a hold whose id was read from Redis makes its own client answer, about its own lock", async () => {
    const { lock, near, far, proxy } = stage;
    const { keeper, forger, channel, key, own } = await kept();
    const heard: string[] = [];
    const ears = far.redis.duplicate();
    onTestFinished(() => ears.disconnect());
    ears.on("pmessage", (_, where: string, text: string) => void heard.push(`${where} ${text}`));
    await ears.psubscribe("*");
    const hold = await lock.holder();
    const elsewhere = ["other:channel", "*", `${near.locks.id}:{x}`, "holdfast:quorum:{x}:free", ""];
    const strange = elsewhere.map((asker) => `recall ${hold} ?${nonceOf(asker)} ${key}`);
    const lying = `recall ${hold} ?${nonceOf(near.locks.id)} ${key} and another:{lock}`;
    proxy.record();
    await forger.publish(channel, [...strange, lying]);
    const answer = `${own} idle ${nonceOf(near.locks.id)} ${key}`;
    await until(() => heard.includes(answer), { what: "the one answer" });
    const told = heard.filter((text) => !text.startsWith(`${channel} recall `));
    expect(told).toEqual([answer]);
    expect(proxy.commands.filter(({ command }) => runs("release")(command))).toEqual([]);
    expect(await lock.holder()).toBe(hold);
    expect(keeper.locks.stats().kept).toBe(1);
  });
});
