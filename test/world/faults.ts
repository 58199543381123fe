import type { Member, Run } from "./run.ts";

/** In ms: how long the effects of a fault may last after it. */
const AFTERWARDS = 6_500;
const MOST_CRASHES = 3;

type Fault = (run: Run, member: Member, ms: number) => void;

const restoreLater = (run: Run, member: Member, ms: number): void => {
  run.time.at(run.time.now + ms, 1, member.process, () => member.link.restore());
};

/** What happens to what was sent before a connection broke. */
const copiesOf = ({ dice }: Run, isLost: boolean): "lost" | number => {
  if (isLost) return "lost";
  return dice.chance(0.3) ? 0 : dice.between(0, dice.chance(0.5) ? 100 : 8_000);
};

/** Breaks the connection for commands. */
function cutCommands(run: Run, member: Member, isLost: boolean): void {
  const wire = member.network.wireOf(member.link);
  if (!wire) return;
  wire.cut(copiesOf(run, isLost));
  restoreLater(run, member, run.dice.between(1, 60));
}

/** While the next command of such a name is under way. */
const cutAt =
  (...names: readonly RegExp[]): Fault =>
  (run, member) => {
    const { dice, time } = run;
    member.network.trap = {
      names: dice.one(names),
      spring: () =>
        void time.after(dice.between(0, 2 * run.delays.most), () =>
          cutCommands(run, member, dice.chance(0.3)),
        ),
    };
  };

const ACQUIRE = /acquire|begin/;
const RELEASE = /release|yield|leave|end/;
const RENEW = /renew|confirm/;
const RECHECK = /recheck|renew|confirm/;
const ANY = /./;

/** Each with how often it comes, relative to the others. */
const FAULTS: readonly (readonly [number, Fault])[] = [
  [1, (_, { process }, ms) => process.pause(ms)],
  [1, (run, member) => cutCommands(run, member, run.dice.chance(0.5))],
  [
    1,
    ({ dice }, { network, link }) => {
      const wires = [...network.wires].filter(({ isOpen, end }) => isOpen && end !== link);
      if (wires.length > 0) dice.one(wires).cut("lost", dice.chance(0.5) ? dice.between(0, 6_000) : 0);
    },
  ],
  [1, ({ server }, _, ms) => server.pause(Math.min(ms, 3_000))],
  [1, ({ server }) => server.forgetScripts()],
  [
    1,
    (run, member) => {
      if (run.crashes >= MOST_CRASHES || run.members.size < 2) return;
      run.crash(member);
      run.replace(member);
    },
  ],
  [
    1,
    ({ dice }, { network }, ms) => {
      const wires = [...network.wires].filter(({ isOpen }) => isOpen);
      if (wires.length > 0) dice.one(wires).freeze(ms);
    },
  ],
  [
    1,
    (run) => {
      run.delays.slow = run.dice.chance(0.5) ? 0.05 : 0;
    },
  ],
  [1, ({ dice, server }) => server.setBack(dice.between(0, dice.chance(0.5) ? 20 : 2_000))],
  [3, cutAt(RELEASE, ACQUIRE, RECHECK, ANY)],
  [
    2,
    (run, { network }) => {
      const ms = run.dice.chance(0.5) ? run.dice.between(200, 3_000) : run.dice.between(5_000, 9_000);
      network.trap = {
        names: run.dice.one([ACQUIRE, ACQUIRE, RENEW, ANY]),
        spring: (wire) => wire.deafen(ms),
      };
    },
  ],
];
const ALL = FAULTS.flatMap(([weight, fault]) => Array<Fault>(weight).fill(fault));

/** One fault after the other, until `end`. */
export function trouble(run: Run, end: number): void {
  const { dice, time } = run;
  const next = (): void => {
    if (time.now > end) return;
    const member = dice.one([...run.members]);
    const ms = dice.chance(0.2) ? dice.between(1_000, 12_000) : dice.between(1, 300);
    run.counts.faults++;
    for (const one of run.members)
      one.troubleUntil = Math.max(one.troubleUntil, time.now + Math.min(ms, 3_000) + 500);
    member.troubleUntil = Math.max(member.troubleUntil, time.now + ms + AFTERWARDS);
    dice.one(ALL)(run, member, ms);
    time.after(dice.chance(0.3) ? dice.between(0, 20) : dice.between(50, 1_500), next);
  };
  time.after(dice.between(0, 2_000), next);
}
