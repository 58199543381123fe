import type { Term } from "../../src/index.ts";
import { ask, codeOf, enter, giveBack, leave, type Plan, refuse } from "./callers.ts";
import { kinds, leaseOf } from "./kinds.ts";
import type { Holding, Member, Observing, Request, Run } from "./run.ts";

/** A caller that campaigns, leads and observes, until the plan's end. */
export async function lead(run: Run, member: Member, plan: Plan): Promise<void> {
  const { dice, time } = run;
  const { process } = member;
  while (run.goesOnIn(member)) {
    await process.sleep(dice.between(1, 400));
    if (time.now >= plan.end || process.isDead) return;
    const name = `election:${dice.one(plan.names)}`;
    await dice.one([campaign, campaign, runAsLeader, observe])(run, member, name);
  }
}

type Pattern = (run: Run, member: Member, name: string) => Promise<void>;

const requestOf = ({ time }: Run, member: Member, name: string, more: Partial<Request> = {}): Request => ({
  ...{ member, kindName: "term", kind: kinds.term, name, units: 1 },
  ...{ wait: Number.POSITIVE_INFINITY, isFixed: false, since: time.now },
  abortedAt: Number.POSITIVE_INFINITY,
  ...more,
});

/** Leads for some time; observers of some terms see a second value. */
const campaign: Pattern = async (run, member, name) => {
  const { dice } = run;
  const wait = dice.chance(0.3) ? dice.whole(0, 3_000) : Number.POSITIVE_INFINITY;
  const holding = await ask(run, requestOf(run, member, name, { wait }));
  if (!holding) return;
  await member.process.sleep(dice.chance(0.8) ? dice.between(1, 300) : dice.between(300, 5_000));
  if (member.process.isDead) return;
  if (dice.chance(0.3)) {
    const { proclaim } = holding.lease as unknown as Term;
    await proclaim(`${member.client.id} again`).catch((error: unknown) => {
      if (!/^LOCK_(LOST|UNAVAILABLE)$/.test(codeOf(error))) run.fail(`proclaim(): ${codeOf(error)}`);
    });
  }
  if (!member.process.isDead) await giveBack(run, holding);
};

/** A body that leads until it has returned in a term; or until its signal aborts. */
const runAsLeader: Pattern = async (run, member, name) => {
  const { dice, story } = run;
  const { process, client } = member;
  const controller = new AbortController();
  if (dice.chance(0.5)) process.timers.setTimeout(() => controller.abort(), dice.between(0, 6_000));
  let request = requestOf(run, member, name);
  const ask = (): void => {
    run.requests.add(request);
    for (const check of run.checks) check.asked?.(request);
  };
  let [terms, inside] = [0, 0];
  let last: Holding | null = null;
  let hasEnded = false;
  ask();
  story.tell(process.name, `asks to run as the leader of ${name}`);
  const options = { value: client.id, signal: controller.signal };
  const running = client.election(name).runAsLeader(options, async (term) => {
    if (process.isDead) return 0;
    terms++;
    if (++inside > 1) run.fail(`${process.name} runs two bodies of one call as the leader of ${name}`);
    run.requests.delete(request);
    // It is given back after the body, by its client.
    const holding = enter(
      run,
      request,
      leaseOf(term, async () => {}),
    );
    await process.sleep(dice.chance(0.8) ? dice.between(1, 300) : dice.between(300, 5_000));
    inside--;
    if (process.isDead) return 0;
    await leave(run, holding);
    last = holding;
    // The call waits for a further term only if this one was lost, which its release may find out.
    const again = (): void => {
      if (hasEnded || !term.lost || process.isDead) return;
      request = requestOf(run, member, name);
      ask();
    };
    if (term.lost) again();
    else term.signal.addEventListener("abort", again);
    return terms;
  });
  const outcome = await running.then(
    (result) => ({ result }),
    (error: unknown) => ({ error }),
  );
  hasEnded = true;
  run.requests.delete(request);
  if (process.isDead) return;
  if ("error" in outcome) refuse(run, request, outcome.error);
  else {
    const { terms: led, value } = outcome.result;
    story.tell(process.name, `has run as the leader of ${name}: ${led} terms, ${value}`);
    if (led !== terms || (value !== undefined && value !== terms))
      run.fail(`runAsLeader() of ${name}: ${led} terms and ${value}, and its body ran ${terms} times`);
    if (value === undefined && !controller.signal.aborted)
      run.fail(`runAsLeader() of ${name} resolved without a value, and its signal is not aborted`);
    if (last) for (const check of run.checks) check.left?.(last, null);
  }
};

/** Sees who leads, for some time. */
const observe: Pattern = async (run, member, name) => {
  const { dice, story, time } = run;
  const { process, client } = member;
  const controller = new AbortController();
  process.timers.setTimeout(() => controller.abort(), dice.between(100, 10_000));
  const observing: Observing = { member, name, since: time.now, shown: undefined };
  run.observers.add(observing);
  try {
    for await (const leader of client.election(name).observe({ signal: controller.signal })) {
      if (process.isDead) return;
      observing.shown = leader;
      story.tell(process.name, `sees that ${leader ? `${leader.value} leads` : "none leads"} ${name}`);
    }
  } catch (error) {
    if (!run.isClosing(member)) run.fail(`observe() of ${name}: ${codeOf(error)}`);
  } finally {
    run.observers.delete(observing);
  }
};
