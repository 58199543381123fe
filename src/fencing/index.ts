export { type FencedEvalOptions, fencedEval } from "./fenced-eval.ts";
export { type FencedSetOptions, fencedSet } from "./fenced-set.ts";
export type { FenceOptions } from "./options.ts";
