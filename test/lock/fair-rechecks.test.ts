import { afterAll, expect, it } from "vitest";
import { freshName, Parties } from "../support/fixture.ts";
import { staysQuiet } from "../support/quiet.ts";
import { onScript } from "../support/scripts-sent.ts";
import { runs } from "../support/stage.ts";
import { until } from "../support/until.ts";

// One look keeps the entries of all callers of a client, as long as it is executed while its own
// entry stands.

const parties = new Parties();
staysQuiet();
afterAll(parties.close);

it("if a caller is granted the lock during its re-check, the next one re-checks before the first can release", async () => {
  const [holder, client] = [await parties.join(), await parties.join()];
  const name = freshName();
  const held = await holder.locks.lock(name).lock();
  const [isLook, isRelease] = [runs("recheck"), runs("release")];
  const sent: string[] = [];
  let sendLook = (): void => {};
  onScript(client.redis, ({ name, args }, send) => {
    const command = [name, ...args.map(String)];
    // Behind its hash, the number of its keys, and four keys.
    if (isLook(command)) sent.push(`look of ${args[6]}`);
    if (isRelease(command)) sent.push("release");
    if (sent.length === 1) sendLook = send;
    else send();
  });
  const fair = client.locks.fairLock(name);
  const first = fair.lock();
  const second = fair.lock();
  const waiters = async () => (await holder.locks.lock(name).inspect()).waiters?.length ?? 0;
  await until(async () => (await waiters()) === 2);
  await until(() => sent.length === 1, { what: "the look of the first" });
  await held.unlock();
  const unlocked = (await first).unlock();
  sendLook();
  await unlocked;
  await (await second).unlock();
  expect(sent).toEqual([sent[0], expect.stringMatching(/^look of /), "release", "release"]);
  expect(sent[1]).not.toBe(sent[0]);
});
