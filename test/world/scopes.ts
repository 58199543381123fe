import { ask, giveBack, type Plan } from "./callers.ts";
import { type KindName, kinds } from "./kinds.ts";
import type { Holding, Member, Request, Run } from "./run.ts";

/** Kinds that a scope enters again. */
const REENTRANT: readonly KindName[] = [
  "lock",
  "fairLock",
  "lock of a shared name",
  "fairLock of a shared name",
];
/** A writer, and the reader inside its lease. */
const WRITERS: readonly (readonly [KindName, KindName])[] = [
  ["write", "read"],
  ["fair write", "fair read"],
];

/** A caller that uses `locks.scope()`, until the plan's end. */
export async function wanderInScopes(run: Run, member: Member, plan: Plan): Promise<void> {
  const { dice, time } = run;
  const { process, client } = member;
  while (run.goesOnIn(member)) {
    await process.sleep(dice.between(1, 400));
    if (time.now >= plan.end || process.isDead) return;
    const scope = {};
    const enter = (kindName: KindName, name: string): Promise<Holding | null> => {
      const kind = kinds[kindName];
      const request: Request = {
        member,
        kindName,
        kind,
        name: `${kind.family}:${name}`,
        units: 1,
        wait: Number.POSITIVE_INFINITY,
        isFixed: false,
        since: time.now,
        scope,
        abortedAt: Number.POSITIVE_INFINITY,
      };
      return ask(run, request, client);
    };
    const pattern = dice.one([siblings, inside, severalNames]);
    await client.scope(() => pattern(run, member, plan, enter));
  }
}

type Pattern = (
  run: Run,
  member: Member,
  plan: Plan,
  enter: (kindName: KindName, name: string) => Promise<Holding | null>,
) => Promise<void>;

const leave = async (run: Run, { process }: Member, holdings: readonly (Holding | null)[]): Promise<void> => {
  for (const holding of holdings) {
    if (run.dice.chance(0.5)) await process.sleep(run.dice.between(0, 30));
    if (holding && !process.isDead) await giveBack(run, holding);
  }
};

/** Two calls at once for one lock: the second one enters when the first one has it. */
const siblings: Pattern = async (run, member, { names }, enter) => {
  const [kindName, name] = [run.dice.one(REENTRANT), run.dice.one(names)];
  await leave(run, member, await Promise.all([enter(kindName, name), enter(kindName, name)]));
};

/** A writer reads, and either may leave first. */
const inside: Pattern = async (run, member, { names }, enter) => {
  const { dice } = run;
  const [[write, read], name] = [dice.one(WRITERS), dice.one(names)];
  const writer = await enter(write, name);
  const reader = writer && (await enter(read, name));
  await leave(run, member, dice.chance(0.6) ? [writer, reader] : [reader, writer]);
};

/** In the order of the names, so that callers do not wait for each other. */
const severalNames: Pattern = async (run, member, { names }, enter) => {
  const kindName = run.dice.one(REENTRANT);
  const holdings: (Holding | null)[] = [];
  for (const name of [...names].sort()) holdings.push(await enter(kindName, name));
  await leave(run, member, holdings);
};
