import { channelOf, entries, HANDOFF, nameOf, type Owned, owners, ownersOf } from "./ownership.ts";
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
        void time.after(dice.chance(0.3) ? 0 : dice.between(0, 2 * run.delays.most), () =>
          cutCommands(run, member, dice.chance(0.3)),
        ),
    };
  };

/** The connection for commands stays open and carries nothing, until it breaks. */
const halfOpen: Fault = (run, member) => {
  const { dice, time } = run;
  member.network.trap = {
    names: ACQUIRE,
    spring: (wire) => {
      const ms = dice.between(10_500, 12_000);
      wire.freeze(ms);
      time.after(ms - 1, () => {
        wire.cut("lost");
        restoreLater(run, member, dice.between(1, 60));
      });
    },
  };
};

/** In ms: a little less than until a subscriber is connected again. */
const RECONNECT = 45;

/** Replies come late, and the messages of a moment within that time do not come at all. */
const missMessages: Fault = (run, { network, link }) => {
  const { dice, time } = run;
  const noticed = dice.between(0, 300);
  network.trap = {
    names: dice.one([RECHECK, ACQUIRE]),
    spring: (wire) => {
      wire.deafen(dice.between(100, 2_000));
      let cuts = dice.whole(1, 6);
      const cut = (): void => {
        for (const one of network.wires) if (one.isOpen && one.end !== link) one.cut("lost", noticed);
        if (--cuts > 0) time.after(RECONNECT, cut);
      };
      time.after(dice.between(0, 100), cut);
    },
  };
};

/** Another caller takes the lock away, maybe before its holder has read that it has it. */
const forceRelease: Fault = (run, { network }) => {
  const { dice, time } = run;
  network.trap = {
    names: dice.one([ACQUIRE, ANY]),
    spring: (wire, { keys }) => {
      const name = nameOf(keys.full[0] ?? "");
      if (name === null) return;
      if (dice.chance(0.7)) wire.deafen(dice.between(20, 1_000));
      time.after(dice.between(0, 20), () => {
        const { client, process } = dice.one([...run.members]);
        run.story.tell(process.name, `takes ${name} away`);
        const { read, write } = client.readWriteLock(name);
        const lock = /^f?rw:/.test(name) ? dice.one([read, write]) : client.lock(name);
        if (/^f?sem:/.test(name)) return;
        process.soon(() => {
          const isTerm = name.startsWith("election:");
          const force = (): Promise<boolean> =>
            name.startsWith("remember:") ? client.stopRun(name) : lock.forceUnlock();
          (isTerm ? client.election(name).forceResign() : force()).catch(() => {});
        });
      });
    },
  };
};

/** A message that no script has written gives the lock to a waiter, for longer than it asked for. */
const forgeGrant: Fault = (run) => {
  const { dice, server, time } = run;
  let tries = 20;
  const forge = (): void => {
    const waiting = entries(run).filter(({ key }) => HANDOFF.test(key));
    if (waiting.length === 0) {
      if (--tries > 0) time.after(50, forge);
      return;
    }
    const { key, hold, process } = dice.one(waiting);
    const ttl = dice.chance(0.3) ? 3_600_000 : Math.round(1.3 * (run.memberOf(process)?.leaseTime ?? 0));
    const lock = key.slice(0, -":queue".length);
    const { micros } = server.redis;
    run.effects["messages forged"]++;
    run.story.tell("network", `a forged message gives ${lock} for ${ttl} ms to ${hold}`);
    server.redis.publish(channelOf(hold), `grant ${micros + 1} ${micros} ${ttl} 0 ${hold} ${lock}`);
  };
  forge();
};

const USED_UP = String(Number.MAX_SAFE_INTEGER);

/** No token is left, until somebody repairs the key. */
const useUpTokens: Fault = ({ dice, server: { redis }, story, time }, _, ms) => {
  for (const key of redis.keys.keys()) {
    const kept = key.startsWith("holdfast:clock") ? redis.find(key) : undefined;
    if (kept?.type !== "string" || kept.value === USED_UP) continue;
    story.tell("Redis", `somebody writes the highest token into ${key}`);
    const { value } = kept;
    redis.keys.set(key, { ...kept, value: USED_UP });
    time.after(Math.min(ms, dice.between(50, 2_000)), () => {
      story.tell("Redis", `somebody repairs ${key}`);
      redis.keys.set(key, { ...kept, value });
    });
  }
};

/** The locks that a process has cached, and that no caller of it uses, waits for or is giving back. */
function cachedBy(run: Run, member: Member): Owned[] {
  return owners(run).filter((owned) => {
    const { key, name, process } = owned;
    const kept = run.server.redis.find(key);
    // Its holder says that it may be idle: see lua/handoff/start.lua.
    if (process !== member.process.number || kept?.type !== "string" || kept.value[1] !== "2") return false;
    // RACE: a process that ends reads no answer: if Redis has forgotten the script of a release that is
    // under way, it is not sent again.
    const leaving = [...run.leaving].filter((one) => one.name === name);
    const concerned = [...run.inside(name), ...run.wanting(name), ...leaving];
    const grant = run.grants.of(owned);
    return !grant?.isGhost && !concerned.some((one) => one.member === member);
  });
}

/** `process.exit()`: what it has unlocked or cached is released by its exit handlers. */
const exit: Fault = (run) => {
  const { time } = run;
  let tries = 40;
  const look = (): void => {
    if (run.crashes >= MOST_CRASHES || run.members.size < 2) return;
    for (const member of run.members) {
      const isReady = member.process.busyUntil <= time.now && run.isWell(member);
      const cached = isReady ? cachedBy(run, member) : [];
      if (cached.length === 0) continue;
      run.effects["exits with locks"] += cached.length;
      exitNow(run, member, cached);
      return;
    }
    if (--tries > 0) time.after(50, look);
  };
  look();
};

function exitNow(run: Run, member: Member, cached: readonly Owned[]): void {
  const { time, server } = run;
  run.crash(member, 0, true);
  run.replace(member);
  const at = time.now;
  time.after(run.slack, () => {
    if (server.paused.until > at) return;
    for (const { key, hold } of cached)
      if (ownersOf(run, key).some((one) => one.hold === hold))
        run.fail(`${member.process.name} has ended by process.exit(), and ${key} stays its own: ${hold}`);
  });
}

const ACQUIRE = /acquire|begin|take/;
const RELEASE = /release|yield|leave|end|finish/;
const RENEW = /renew|confirm/;
const RECHECK = /recheck|renew|confirm/;
const ANY = /./;

/** Each with how often it comes, relative to the others. */
const FAULTS: readonly (readonly [number, Fault])[] = [
  [2, (_, { process }, ms) => process.pause(ms)],
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
  [1, ({ dice }, { process }) => process.stepClock(dice.between(-20_000, dice.chance(0.2) ? 5_000 : 0))],
  [2, exit],
  [2, halfOpen],
  [2, missMessages],
  [2, forceRelease],
  [1, forgeGrant],
  [1, useUpTokens],
  [3, cutAt(RELEASE, ACQUIRE, RECHECK, ANY)],
  [
    2,
    ({ dice, time }, { network, process }) => {
      const ms = dice.between(...dice.one(SILENCES));
      const isStepped = dice.chance(0.3);
      network.trap = {
        names: dice.one([ACQUIRE, ACQUIRE, RENEW, ANY]),
        spring: (wire) => {
          wire.deafen(ms);
          if (isStepped) time.after(dice.between(0, ms), () => process.stepClock(dice.between(-20_000, 0)));
        },
      };
    },
  ],
];
/** In ms: shorter than a reply may take, about as long, longer. */
const SILENCES: readonly (readonly [number, number])[] = [
  [200, 3_000],
  [3_000, 5_000],
  [5_000, 9_000],
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
