import { client } from "./client.ts";
import { core } from "./core.ts";
import { counted } from "./counted.ts";
import { elections } from "./elections.ts";
import { kept } from "./kept.ts";
import { leases } from "./leases.ts";
import { once } from "./once.ts";
import type { Plant } from "./plant.ts";
import { pools } from "./pools.ts";
import { remember } from "./remember.ts";
import { scripts } from "./scripts.ts";
import { sharing } from "./sharing.ts";
import { world } from "./world.ts";

/** Every bug that is planted. */
export const plants: readonly Plant[] = [
  ...scripts,
  ...counted,
  ...client,
  ...core,
  ...pools,
  ...sharing,
  ...kept,
  ...elections,
  ...leases,
  ...once,
  ...remember,
  ...world,
];
