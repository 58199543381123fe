import type { Run } from "./run.ts";

/** In ms: for clients to close. */
const PATIENCE = 20_000;
/** In ms: until what they have sent has arrived. */
const AFTERWARDS = 1_000;

/** All callers have ended: closes the clients of the processes that live. `wait`: ms after that. */
export async function closeAll(run: Run, wait = AFTERWARDS): Promise<void> {
  const { time } = run;
  for (const check of run.checks) check.ended?.();
  let open = run.members.size;
  for (const { process, client } of [...run.members])
    process.soon(() => {
      client.close().then(
        () => open--,
        (error: Error) => run.fail(`close(): ${error.stack}`),
      );
    });
  await time.run(time.now + PATIENCE, () => run.isOver || open === 0);
  if (open > 0 && !run.isOver) return run.fail(`close() of ${open} clients did not end`);
  if (run.isOver) return;
  await time.run(time.now + wait, () => run.isOver);
  for (const check of run.checks) check.closed?.();
}
