import { once } from "node:events";
import { mkdtemp, readFile, rename, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { createLockClient, type MultiLease } from "holdfast";
import { fencedEval } from "holdfast/fencing";
import { connect, figure, ms, prove, startProcess, word } from "./support.ts";

const [, , role, folder = "", ...files] = process.argv;
const redis = connect();
/** Short where the process is to die or stop: the others wait for that long. */
const leaseTime = role === "victim" || role === "sleeper" ? 2_000 : 30_000;
const locks = createLockClient(redis, { label: role ?? "parent", leaseTime });

// #region edit
/** Leases all files of a task, or none: agents with overlapping tasks wait, and cannot deadlock. */
async function edit(
  paths: string[],
  task: (lease: MultiLease) => Promise<Map<string, string>>,
): Promise<void> {
  await locks.multiLock(paths).withLock({ wait: 600_000 }, async (lease) => {
    const changed = await task(lease); // reads, thinks, and resolves with the new texts
    for (const [path, text] of changed) await write(path, text, Number(lease.tokens.get(path)));
  });
}

/** Redis remembers the highest token for each file, and refuses an agent whose lease was over. */
async function write(path: string, text: string, fence: number): Promise<void> {
  const draft = `${path}.${fence}`;
  await writeFile(draft, text);
  await fencedEval(redis, "return 1", { fence, resource: path });
  await rename(draft, path); // readers see the old text or the new one
}
// #endregion

/** A task: each file has a number, which becomes larger by one. */
async function addOne(paths: string[]): Promise<Map<string, string>> {
  const texts = new Map<string, string>();
  for (const path of paths) texts.set(path, `${Number(await readFile(path, "utf8")) + 1}`);
  return texts;
}

const paths = files.map((file) => join(folder, file));
if (role === "agent") {
  // Each round another pair of the files, in an order of its own.
  for (let i = 0; i < 15; i++) {
    const pair = [i + process.pid, i + 1 + process.pid].map((n) => String(paths[n % paths.length]));
    await edit(pair, () => addOne(pair));
  }
} else if (role === "victim") {
  await edit(paths, async () => {
    process.send?.("leased");
    return await new Promise<never>(() => {});
  });
} else if (role === "sleeper") {
  const outcome = await edit(paths, async () => {
    const texts = await addOne(paths);
    process.send?.("leased");
    await once(process, "message"); // it is stopped here, for longer than its lease
    return texts;
  }).then(String, (error: Error) => error.name);
  process.send?.(outcome);
} else {
  const repository = await mkdtemp(join(tmpdir(), "holdfast-agents-"));
  const names = ["a.ts", "b.ts", "c.ts"];
  const read = async (file: string): Promise<number> =>
    Number(await readFile(join(repository, file), "utf8"));
  try {
    for (const name of names) await writeFile(join(repository, name), "0");
    const agents = [1, 2, 3, 4].map(() => startProcess(import.meta.url, "agent", repository, ...names));
    await Promise.all(agents.map((child) => child.exitCode ?? once(child, "exit")));
    const edits = (await Promise.all(names.map(read))).reduce((sum, count) => sum + count, 0);
    prove(edits === 4 * 15 * 2, `no edit is lost: ${edits} of 120`);

    const victim = startProcess(import.meta.url, "victim", repository, "a.ts", "b.ts");
    await word(victim);
    const file = locks.lock(join(repository, "a.ts"));
    prove((await file.tryLock()) === null, "its files are leased");
    prove((await file.inspect()).holder?.label === "victim", "others see which agent has them");
    victim.kill("SIGKILL");
    const killed = performance.now();
    await edit([file.name], () => addOne([file.name]));
    figure("a dead agent's files come free, with a lease of 2 s, after", ms(performance.now() - killed));

    const before = await read("c.ts");
    const sleeper = startProcess(import.meta.url, "sleeper", repository, "c.ts");
    await word(sleeper);
    sleeper.kill("SIGSTOP");
    for (let i = 0; i < 2; i++)
      await edit([join(repository, "c.ts")], () => addOne([join(repository, "c.ts")]));
    sleeper.send("go on");
    sleeper.kill("SIGCONT");
    const outcome = await word(sleeper);
    prove(/Lost|Stale/.test(outcome), `an agent that stood still is refused: ${outcome}`);
    prove((await read("c.ts")) === before + 2, "and changes nothing");
    if (sleeper.exitCode === null) await once(sleeper, "exit");
  } finally {
    await rm(repository, { recursive: true });
  }
}
await locks.close();
await redis.quit();
process.disconnect?.();
