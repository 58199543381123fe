import { expect, it, onTestFinished } from "vitest";
import { createLockUI } from "../../src/tools/ui/index.ts";
import { Cli } from "../support/cli.ts";
import { freshName } from "../support/fixture.ts";
import { OwnServer } from "../support/own-server.ts";
import { until } from "../support/until.ts";

const own = new OwnServer();
const CALLERS = 3;

it.each([
  ["lock", 1],
  ["fairLock", CALLERS],
] as const)(
  "three callers of one process that wait for a %s count as one waiting process",
  async (kind, places) => {
    const { locks } = await own.parties.join({ url: own.url });
    const { locks: others, redis } = await own.parties.join({ url: own.url });
    const name = freshName();
    const lease = await locks[kind](name).lock();
    const waits = Promise.all(Array.from({ length: CALLERS }, () => others[kind](name).withLock(() => {})));
    waits.catch(() => {}); // where the test fails before it awaits them
    await until(async () => (await others.lock(name).inspect()).waiters?.length === places);

    // Of this client its callers are counted …
    expect((await others.lock(name).inspect()).here.waiting).toBe(CALLERS);
    expect([others.stats().waiting, locks.stats().waiting]).toEqual([CALLERS, 0]);
    // … and of the others nothing but processes is known.
    const program = async (...args: string[]) => (await new Cli(own.url, args).finished).stdout;
    const columns = (line = "") => line.split(/ {2,}/);
    const [titles, row] = (await program("ls", name)).split("\n");
    expect(columns(row)[columns(titles).indexOf("WAITING PROCS")]).toBe("1");
    expect((await program("top", name)).split("\t")[5]).toBe("1");
    const seen = await program("inspect", name);
    expect(seen).toContain(`  1 waiting process${places > 1 ? ", with 3 callers" : ""}:\n`);
    const ui = createLockUI({ locks: others, redis, authorize: () => true });
    onTestFinished(() => ui.close());
    const answer = await ui.fetch(new Request(`http://localhost/?part=state&view=now&search=${name}`));
    const { locks: shown } = (await answer.json()) as { locks: unknown };
    expect(shown).toMatchObject([{ name, waitingProcesses: 1 }]);

    await lease.unlock();
    await waits;
    expect(others.stats().waiting).toBe(0);
  },
);
