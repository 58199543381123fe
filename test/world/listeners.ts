import { abort, ask, giveBack } from "./callers.ts";
import type { Holding, Member, Run } from "./run.ts";

/** Listeners that unlock, take or abort something in the statement in which they are called. */
export function listen(run: Run, member: Member): void {
  const { dice, time } = run;
  const { client, process } = member;
  const mine = (): Holding[] =>
    [...run.holdings.values()].flatMap((holdings) =>
      [...holdings].filter((one) => one.member === member && !one.isLeaving),
    );
  const isQuiet = (): boolean => process.isDead || run.isOver || dice.chance(0.5);
  const unlockBeside = ({ name }: { readonly name: string }): void => {
    if (isQuiet()) return;
    const other = mine().find((one) => one.name === name && one.kind.mode !== "alone");
    if (other) run.goesOn(member, giveBack(run, other));
  };
  const tryAgain = (): void => {
    if (isQuiet()) return;
    const [held] = mine().filter(
      ({ kind }) => kind.mode === "alone" && kind.hasTokens && kind.family !== "remember",
    );
    if (!held) return;
    const request = {
      ...{ member, kindName: held.kindName, kind: held.kind, name: held.name, units: 1 },
      ...{ wait: null, isFixed: false, since: time.now },
      abortedAt: Number.POSITIVE_INFINITY,
    };
    const take = async (): Promise<void> => {
      const holding = await ask(run, request);
      if (holding && !process.isDead) await giveBack(run, holding);
    };
    run.goesOn(member, take());
  };
  client.on("release", unlockBeside);
  client.on("release", tryAgain);
  client.on("acquire", tryAgain);
  client.on("lost", unlockBeside);
  client.on("wait", () => {
    if (isQuiet()) return;
    for (const request of run.requests) if (request.member === member && abort(run, request)) return;
  });
}
