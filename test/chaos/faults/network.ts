import { setTimeout as delay } from "node:timers/promises";
import { named } from "../../support/matches.ts";
import type { HeldCommand, TcpProxy, Which } from "../../support/tcp-proxy.ts";
import type { Fault, Field } from "./fault.ts";

const SCRIPTS = named("evalsha", "eval");
/** ms to wait for a fault that hits the next command. */
const SOON = 2_000;

/**
 * One worker's wires, or now and then everybody's. Where some servers can be spared, mostly to some
 * of them only.
 */
function some({ fleet, wires, dice }: Field): { proxies: readonly TcpProxy[]; whose: string } {
  const member = dice.chance(0.2) ? null : dice.pick(fleet.members);
  const [whose, most] = member ? [`${member.by}'s`, wires.servers.length] : ["everybody's", wires.spare];
  const isOfSome = wires.spare > 0 && dice.chance(0.8);
  const servers = isOfSome ? dice.some(wires.servers).slice(0, most) : wires.servers;
  const proxies = member ? wires.of(member.index, servers) : wires.all(servers);
  return { proxies, whose: isOfSome ? `${whose} (nodes ${servers.map((one) => one + 1)})` : whose };
}

const which = ({ dice }: Field): Which => dice.pick(["all", "commands", "subscribers"] as const);
const length = ({ dice }: Field): number => dice.pick([dice.int(50, 600), dice.int(600, 5_000)]);

/** What can happen between a process and Redis. */
export const networkFaults: readonly Fault[] = [
  {
    kind: "cut connections",
    weight: 4,
    async run(field, begin) {
      const { proxies, whose } = some(field);
      const what = which(field);
      begin(`${whose} ${what}`);
      for (const proxy of proxies) proxy.cut(what);
    },
  },
  {
    kind: "freeze connections",
    weight: 4,
    async run(field, begin) {
      const { proxies, whose } = some(field);
      const what = which(field);
      const ms = length(field);
      begin(`${whose} ${what} for ${ms} ms`);
      for (const proxy of proxies) proxy.freeze(what);
      await delay(ms);
      for (const proxy of proxies) proxy.thaw();
    },
  },
  {
    kind: "part connections",
    weight: 3,
    async run(field, begin) {
      const { proxies, whose } = some(field);
      const what = field.dice.pick(["commands", "subscribers"] as const);
      const ms = length(field);
      begin(`${whose} ${what}, later ones too, for ${ms} ms`);
      for (const proxy of proxies) proxy.partition(what);
      await delay(ms);
      for (const proxy of proxies) proxy.thaw();
    },
  },
  {
    kind: "slow network",
    weight: 3,
    async run(field, begin) {
      const { proxies, whose } = some(field);
      const which = field.dice.pick(["all", "commands", "subscribers"] as const);
      const direction = field.dice.pick(["both", "to client", "to server"] as const);
      const ms = field.dice.int(5, 700);
      begin(`${whose} ${which}, ${direction}: bytes come ${ms} ms late`);
      const options = direction === "both" ? { which } : { which, direction };
      for (const proxy of proxies) proxy.delay(ms, options);
      await delay(3 * ms + 1_000);
      for (const proxy of proxies) proxy.delay(0);
    },
  },
  {
    kind: "strand commands",
    weight: 3,
    async run(field, begin) {
      const { proxies, whose } = some(field);
      const ms = length(field);
      begin(`${whose}, which come again and then, ${ms} ms later, from the old connection`);
      for (const proxy of proxies) proxy.freeze("commands");
      await delay(field.dice.int(5, 400));
      const old = proxies.map((proxy) => proxy.strand("commands"));
      for (const proxy of proxies) proxy.thaw();
      await delay(ms);
      await Promise.race([Promise.allSettled(old.map((one) => one.deliver())), delay(SOON)]);
    },
  },
  {
    kind: "no network",
    weight: 2,
    async run(field, begin) {
      const { proxies, whose } = some(field);
      const ms = length(field);
      begin(`${whose} connections are cut and refused for ${ms} ms`);
      for (const proxy of proxies) {
        proxy.refuse(true);
        proxy.cut();
      }
      await delay(ms);
      for (const proxy of proxies) proxy.refuse(false);
    },
  },
  {
    kind: "drop replies",
    weight: 4,
    async run(field, begin) {
      const { proxies, whose } = some(field);
      const times = field.dice.int(1, 5);
      begin(`${whose} next ${times}`);
      for (let i = 0; i < times; i++) await happens(proxies, (proxy) => proxy.dropReply(SCRIPTS));
    },
  },
  {
    kind: "drop a command",
    weight: 2,
    async run(field, begin) {
      const { proxies, whose } = some(field);
      begin(`${whose} next`);
      await happens(proxies, (proxy) => proxy.dropCommand(SCRIPTS));
    },
  },
  {
    kind: "deliver a command late",
    weight: 3,
    async run(field, begin) {
      const { proxies, whose } = some(field);
      const ms = length(field);
      begin(`${whose} next, ${ms} ms late`);
      const deliver = async (proxy: TcpProxy): Promise<void> => {
        const held = await proxy.holdCommand(SCRIPTS);
        await delay(ms);
        await held.deliver().catch(() => {}); // its connection has ended meanwhile
      };
      await happens(proxies, deliver, ms);
    },
  },
  {
    kind: "execute a command twice",
    weight: 4,
    async run(field, begin) {
      const { proxies, whose } = some(field);
      const times = field.dice.int(1, 5);
      const ms = length(field);
      begin(`${whose} next ${times}, again ${ms} ms later and from another connection`);
      const copies: HeldCommand[] = [];
      let isOver = false;
      const collect = async (proxy: TcpProxy): Promise<void> => {
        for (let n = 0; n < times && !isOver; n++) {
          const copy = await proxy.copyCommand(SCRIPTS);
          if (!isOver) copies.push(copy);
        }
      };
      await happens(proxies, collect);
      isOver = true;
      await delay(ms);
      await Promise.race([Promise.allSettled(copies.map((copy) => copy.deliver())), delay(SOON)]);
    },
  },
];

/** Not every wire carries a command soon: in a Cluster many carry none. */
async function happens(proxies: readonly TcpProxy[], how: (proxy: TcpProxy) => Promise<unknown>, more = 0) {
  await Promise.race([Promise.all(proxies.map(how)), delay(SOON + more)]);
}
