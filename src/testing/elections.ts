import { codes, electionLua } from "../redis/lua.generated.ts";
import type { Script } from "../redis/script.ts";
import { type Held, renewal } from "./held.ts";
import type { Kept, Memory, Run } from "./memory.ts";

const { OWNER, MINE, GONE, TAKEN } = codes;

/** What a leader has said of itself, in which term. */
interface Said extends Kept {
  readonly token: number;
  readonly number: number;
  readonly text: string;
}

/** The scripts that elections have besides those of a lock. */
export function elections(memory: Memory): [Script, Run][] {
  /** What counts of it: what was said in the present term. */
  function saidIn(held: Held | undefined, leader: string): Said | undefined {
    const said = memory.get<Said>(leader);
    return said && said.token === held?.token ? said : undefined;
  }

  return [
    [
      electionLua.observe,
      ([lock = "", leader = ""]) => {
        const held = memory.get<Held>(lock);
        const said = saidIn(held, leader);
        return held ? [held.token, memory.left(held), said?.number ?? 0, said?.text ?? ""] : [0, 0, 0, ""];
      },
    ],
    [
      electionLua.proclaim,
      ([lock = "", leader = ""], [hold, number, client, value, ttl, news]) => {
        const held = memory.get<Held>(lock);
        if (held?.hold !== hold) return held ? TAKEN : GONE;
        if ((saidIn(held, leader)?.number ?? 0) >= Number(number)) return MINE;
        memory.keep(leader, Number(ttl), {
          token: held?.token ?? 0,
          number: Number(number),
          text: `${client} ${value}`,
        });
        memory.publish(String(news), `changed ${lock}`);
        return OWNER;
      },
    ],
    [
      electionLua.renew,
      ([lock = "", leader = ""], [hold, ttl, longer]) => {
        const held = memory.get<Held>(lock);
        const said = held?.hold === hold ? saidIn(held, leader) : undefined;
        if (said) memory.raise(said, Number(longer));
        return [...renewal(memory, held, [hold, ttl]), said?.number ?? 0];
      },
    ],
  ];
}
