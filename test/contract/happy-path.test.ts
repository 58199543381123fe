import { describeHappyPath } from "./describe-lock.ts";
import { KINDS, type Kind } from "./kinds.ts";

// On a real Redis. The whole contract runs there in the suite `contracts`.
for (const kind of Object.keys(KINDS)) describeHappyPath(kind as Kind);
