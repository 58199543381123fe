import { existsSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { setTimeout as pause } from "node:timers/promises";
import { Redis } from "ioredis";
import { afterAll, afterEach, describe, expect, it } from "vitest";
import { Output } from "../../src/tools/cli/output.ts";
import { runUnder } from "../../src/tools/cli/run/child.ts";
import type { Plan } from "../../src/tools/cli/run/plan.ts";
import { Signals } from "../../src/tools/cli/run/signals.ts";
import { isInTime } from "../../tools/machine.ts";
import { launchServer } from "../../tools/redis/index.ts";
import { Cli, lives, temporary } from "../support/cli.ts";
import { freshName, Parties, testUrl } from "../support/fixture.ts";
import { freezeEndOf, unpauseClients } from "../support/server-pauses.ts";
import { until } from "../support/until.ts";

// How the command comes to its end where something stands in the way of that.

const parties = new Parties();
afterAll(parties.close);
afterEach(() => Cli.endAll());

const pidIn = (run: Cli): number => Number(/pid (\d+)/.exec(run.stdout)?.[1]);
const beatsOf = (run: Cli): number => run.stdout.match(/beat/g)?.length ?? 0;
const BEATING = "echo pid $$; while :; do echo beat; sleep 0.02; done";

/** "S": it sleeps; "T": it is stopped. */
function stateOf(pid: number): string | undefined {
  const stat = readFileSync(`/proc/${pid}/stat`, "latin1");
  return stat.slice(stat.lastIndexOf(")") + 2)[0];
}

describe.skipIf(process.platform !== "linux")("a command", () => {
  it("is dead before its lease ends, even if this program's output is never read", async ({ skip }) => {
    const server = await launchServer();
    const redis = new Redis(server.url);
    /** Was it dead in time? */
    const round = async (): Promise<boolean> => {
      const name = freshName();
      const line = 'trap "" TERM; echo pid $$; exec yes >&2';
      const flags = ["--lease", "1500ms", "-k", "400ms"];
      const args = ["run", ...flags, name, "--", "sh", "-c", line];
      // A pipe, where writes block, and a reader that reads nothing.
      const unread = 'exec 3>&1; "$@" 2>&1 >&3 | sh -c "echo reader \\$\\$ >&3; exec sleep 600"';
      const run = new Cli(server.url, args, {}, (line) => ["sh", "-c", unread, "sh", ...line]);
      try {
        await until(() => /reader \d+\n/.test(run.stdout) && /pid \d+\n/.test(run.stdout));
        await until(() => stateOf(pidIn(run)) === "S");
        const end = await freezeEndOf(`holdfast:{${name}}`, redis);
        server.suspend();
        await until(() => !lives(pidIn(run)));
        return Date.now() < end;
      } finally {
        server.resume();
        await unpauseClients(redis);
        process.kill(Number(/reader (\d+)/.exec(run.stdout)?.[1]), "SIGKILL");
        await run.finished;
      }
    };
    try {
      expect(await isInTime(round, skip)).toBe(true);
    } finally {
      redis.disconnect();
      await server.stop();
    }
  });

  it("of a nested run is killed with it", async () => {
    const name = freshName();
    const { locks } = await parties.join();
    const inner = ["run", freshName(), "--", "sh", "-c", `trap "" TERM; ${BEATING}`];
    const args = ["run", "-k", "200ms", name, "--", process.execPath, Cli.program, ...inner];
    const run = new Cli(testUrl(), args);
    await run.says("beat");
    await locks.lock(name).forceUnlock();
    expect((await run.finished).code).toBe(79);
    expect(lives(pidIn(run))).toBe(false);
  });

  it("gets a signal that this program gets, and no SIGKILL afterwards", async () => {
    const name = freshName();
    const { locks } = await parties.join();
    const ignoring = `trap "echo told" TERM; ${BEATING}`;
    const run = new Cli(testUrl(), ["run", "-k", "200ms", name, "--", "sh", "-c", ignoring]);
    await run.says("beat");
    run.kill("SIGTERM");
    await run.says("told");
    const before = beatsOf(run);
    // At least 20 ms each, so 200 ms are over many times.
    await until(() => beatsOf(run) > before + 60);
    expect(await locks.lock(name).isLocked()).toBe(true);
    await locks.lock(name).forceUnlock();
    expect((await run.finished).code).toBe(79);
  });

  it("is killed with its child in another session, which outlives an ordinary end", async () => {
    const name = freshName();
    const { locks } = await parties.join();
    const line = (last: string) => `setsid sh -c 'echo pid $$; exec sleep 600' & ${last}`;
    const lost = new Cli(testUrl(), [
      "run",
      "-k",
      "200ms",
      name,
      "--",
      "sh",
      "-c",
      line('trap "" TERM; wait; wait'),
    ]);
    await lost.says(/pid \d+\n/);
    await locks.lock(name).forceUnlock();
    expect((await lost.finished).code).toBe(79);
    await until(() => !lives(pidIn(lost)));
    const file = join(temporary(), "pid");
    const ended = new Cli(testUrl(), [
      ...["run", name, "--", "sh", "-c"],
      `setsid sh -c 'echo $$ > ${file}.new; mv ${file}.new ${file}; exec sleep 600' > /dev/null 2>&1 < /dev/null & until [ -e ${file} ]; do sleep 0.01; done`,
    ]);
    expect((await ended.finished).code).toBe(0);
    const pid = Number(readFileSync(file, "utf8"));
    expect([lives(pid), await locks.lock(name).isLocked()]).toEqual([true, false]);
    process.kill(pid, "SIGKILL");
  });

  it("is stopped and resumed with this program, and killed if its lease has ended meanwhile", async () => {
    const name = freshName();
    const { locks } = await parties.join();
    // No shell: one that is stopped while it starts a program waits for that, and is no stopped one.
    const beating = 'console.log("pid", process.pid); setInterval(() => console.log("beat"), 20)';
    const run = new Cli(testUrl(), ["run", "--lease", "3s", name, "--", process.execPath, "-e", beating]);
    const stop = async () => {
      run.kill("SIGTSTP");
      await until(() => stateOf(run.pid) === "T" && stateOf(pidIn(run)) === "T");
    };
    await run.says("beat");
    await stop();
    const before = beatsOf(run);
    run.kill("SIGCONT");
    await until(() => beatsOf(run) > before + 5);
    await stop();
    await using _ = await locks.lock(name).lock({ wait: 30_000 });
    const beats = beatsOf(run);
    run.kill("SIGCONT");
    expect((await run.finished).code).toBe(79);
    expect(beatsOf(run)).toBe(beats);
  });

  it("is not started under a lease that is over, or nearly over", async () => {
    const file = join(temporary(), "started");
    const plan: Plan = {
      command: ["touch", file],
      lease: 1_000,
      firstSignal: "SIGTERM",
      killAfter: 300,
      stopsOnLoss: true,
      label: "touch",
      maxHold: null,
    };
    const signals = new Signals();
    const output = new Output({});
    for (const [signal, left] of [
      [AbortSignal.abort(), 900],
      [new AbortController().signal, 200],
    ] as const) {
      const held = { signal, remaining: left };
      expect(await runUnder(held, plan, {}, signals, output)).toMatchObject({ cause: "lost", code: 79 });
    }
    signals.stop();
    expect(existsSync(file)).toBe(false);
  });
});

it.each(["run", "elect"])(
  "holdfast %s gives back what it holds however many signals it gets meanwhile",
  async (how) => {
    const server = await launchServer();
    try {
      const name = freshName();
      const run = new Cli(server.url, [
        how,
        "--json",
        name,
        "--",
        "sh",
        "-c",
        "echo pid $$; read line; exit 3",
      ]);
      await run.says(/pid \d+\n/);
      // Redis answers nothing, so the release takes as long as the test wants.
      server.suspend();
      run.child.stdin?.end("\n");
      await until(() => !lives(pidIn(run)));
      for (const signal of ["SIGTERM", "SIGINT", "SIGTERM"] as const) {
        run.kill(signal);
        await pause(50);
      }
      expect(lives(run.pid)).toBe(true);
      server.resume();
      expect(await run.finished).toMatchObject({
        code: 3,
        signal: null,
        stderr: expect.stringContaining(`"outcome":"exited","code":3`),
      });
      const { locks } = await parties.join({ url: server.url });
      expect(
        how === "run" ? await locks.lock(name).isLocked() : await locks.election(name).leader(),
      ).toBeFalsy();
      await parties.close();
    } finally {
      await server.stop();
    }
  },
);

it("a command may have a --max-hold that is longer than any timer", async () => {
  const args = ["run", "--max-hold", "30d", freshName(), "--", "sleep", "0.3"];
  expect((await new Cli(testUrl(), args).finished).code).toBe(0);
});
