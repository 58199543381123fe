import type { electionLua } from "../../redis/lua.generated.ts";
import { GONE, type Held, type Kept, type Memory, MINE, OWNER, type Run, TAKEN, type Two } from "./memory.ts";

/** What a leader has published, and in which term. */
interface Said extends Kept {
  readonly token: number;
  readonly number: number;
  readonly text: string;
}

type Proclaim = readonly [string, number, string, string, number, string];

/** The scripts of elections besides those of a lock. */
export function elections(db: Memory): Record<keyof typeof electionLua, Run> {
  /** Its valid part: the value of the present term. */
  function saidIn(held: Held | undefined, leader: string): Said | undefined {
    const said = db.get<Said>(leader);
    return said && said.token === held?.token ? said : undefined;
  }

  return {
    observe([lock, leader]: Two) {
      const held = db.get<Held>(lock);
      const said = saidIn(held, leader);
      if (!held) return [0, 0, 0, "", ""];
      const [, label = ""] = held.hold.split(" ");
      return [held.token, db.left(held), said?.number ?? 0, said?.text ?? "", label];
    },
    proclaim([lock, leader]: Two, [hold, number, client, value, ttl, news]: Proclaim) {
      const held = db.get<Held>(lock);
      if (held?.hold !== hold) return held ? TAKEN : GONE;
      if ((saidIn(held, leader)?.number ?? 0) >= number) return MINE;
      db.keep(leader, { token: held?.token ?? 0, number, text: `${client} ${value}` }, ttl);
      db.publish(news, `changed ${lock}`);
      return OWNER;
    },
    renew([lock, leader]: Two, [hold, ttl, longer]: readonly [string, number, number]) {
      const held = db.get<Held>(lock);
      const said = held?.hold === hold ? saidIn(held, leader) : undefined;
      if (said) db.raise(said, longer);
      return [...db.renewal(held, hold, ttl), said?.number ?? 0];
    },
  };
}
