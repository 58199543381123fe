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

/** In ms: how long holders may finish. */
const GRACES = [0, 300, 5_000];

/** A client closes while its callers hold and wait; `replace` starts another process in its place. */
export function closeOne(run: Run, end: number, replace: () => void): void {
  const { dice, time } = run;
  time.after(dice.between(0, end), () => {
    const open = [...run.members].filter((member) => !run.isClosing(member));
    const waiting = open.filter((member) => [...run.requests].some((one) => one.member === member));
    if (open.length === 0) return;
    const member = dice.one(waiting.length > 0 ? waiting : open);
    const { process, client } = member;
    process.soon(() => {
      const closing = { since: time.now, grace: dice.one(GRACES), until: Number.POSITIVE_INFINITY };
      run.story.tell(process.name, `closes its client, with ${closing.grace} ms of grace`);
      member.closing = closing;
      client.close({ grace: closing.grace }).then(
        () => {
          closing.until = time.now;
        },
        (error: Error) => run.fail(`close(): ${error.stack}`),
      );
      replace();
    });
  });
}
